"""Mul and QLinearMul."""

from __future__ import annotations

from intonnx.importer.node_view import NodeView
from intonnx.importer.qdq.boundary import Boundary
from intonnx.importer.qdq.epilogue import dequantized_integers
from intonnx.importer.qdq.rescale import rescale_by_constant
from intonnx.importer.registry import imports, quantizes
from intonnx.ir.graph import Refusal
from intonnx.ir.ops.multiply import Multiply
from intonnx.ir.types import QuantParams

from ._binary import import_qlinear_binary, quantize_binary
from ._normalization_steps import normalized_in_steps


@quantizes("Mul")
def quantize_mul(boundary: Boundary) -> Refusal | None:
    """A product of cast integers and a scale is a dequantize, with a constant a rescaling.

    It may be the end of a normalization; all else is a product of two operands.
    """
    if dequantized_integers(boundary):
        return None
    if rescale_by_constant(boundary, 1) or rescale_by_constant(boundary, 0):
        return None
    if normalized_in_steps(boundary):
        return None
    return quantize_binary(boundary, _multiply)


@imports("QLinearMul", since=1, domain="com.microsoft")
def qlinear_mul(node: NodeView) -> None:
    """QLinearMul."""
    import_qlinear_binary(node, _multiply)


def _multiply(out: QuantParams) -> Multiply:
    return Multiply(out=out)
