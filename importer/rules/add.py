"""Add, Sum, Sub and QLinearAdd."""

from __future__ import annotations

from intonnx.importer.node_view import NodeView
from intonnx.importer.qdq.bias import fold_bias
from intonnx.importer.qdq.boundary import Boundary
from intonnx.importer.qdq.epilogue import float_bias
from intonnx.importer.qdq.table import table_of
from intonnx.importer.qdq.typed_sums import integer_bias
from intonnx.importer.registry import imports, quantizes
from intonnx.ir.graph import Refusal
from intonnx.ir.ops.add import Add, Subtract
from intonnx.ir.types import QuantParams

from ._binary import import_qlinear_binary, quantize_binary
from ._normalization_steps import normalized_in_steps


@quantizes("Add")
def quantize_add(boundary: Boundary) -> Refusal | None:
    """A constant that is added to an accumulator is its bias, or the end of a normalization.

    All else is a sum of two operands.
    """
    if float_bias(boundary) or fold_bias(boundary) or integer_bias(boundary):
        return None
    if normalized_in_steps(boundary):
        return None
    return quantize_binary(boundary, _add)


@quantizes("Sum")
def quantize_sum(boundary: Boundary) -> Refusal | None:
    """Of two operands it is an Add; of one, or with scalars, a table."""
    if len(boundary.node.operands) == 2:
        return quantize_binary(boundary, _add)
    return table_of(boundary)


@quantizes("Sub")
def quantize_sub(boundary: Boundary) -> Refusal | None:
    """A difference of two operands."""
    return quantize_binary(boundary, lambda out: Subtract(out=out))


@imports("QLinearAdd", since=1, domain="com.microsoft")
def qlinear_add(node: NodeView) -> None:
    """QLinearAdd."""
    import_qlinear_binary(node, _add)


def _add(out: QuantParams) -> Add:
    return Add(out=out)
