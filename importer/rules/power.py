"""Pow."""

from __future__ import annotations

from intonnx.importer.qdq.boundary import Boundary
from intonnx.importer.registry import quantizes
from intonnx.ir.graph import Refusal
from intonnx.ir.ops.power import Power

from ._binary import quantize_literal


@quantizes("Pow")
def quantize_power(boundary: Boundary) -> Refusal | None:
    """A power of two operands; an integer exponent is taken as a float."""
    return quantize_literal(boundary, lambda out: Power(out=out))
