"""Div."""

from __future__ import annotations

from intonnx.importer.qdq.boundary import Boundary
from intonnx.importer.qdq.rescale import rescale_by_constant
from intonnx.importer.registry import quantizes
from intonnx.ir.graph import Refusal
from intonnx.ir.ops.divide import Divide

from ._binary import quantize_literal
from ._normalization_steps import normalized_in_steps


@quantizes("Div")
def quantize_divide(boundary: Boundary) -> Refusal | None:
    """A quotient of two operands; that of an accumulator and constants joins its weights."""
    if rescale_by_constant(boundary, 1, divides=True):
        return None
    if normalized_in_steps(boundary):
        return None
    return quantize_literal(boundary, lambda out: Divide(out=out))
