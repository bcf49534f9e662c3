"""Concat and QLinearConcat."""

from __future__ import annotations

from intonnx.importer.node_view import NodeView
from intonnx.importer.qdq.boundary import Boundary
from intonnx.importer.registry import imports, quantizes
from intonnx.ir.errors import ModelFailure
from intonnx.ir.graph import Refusal
from intonnx.ir.ops.concatenate import Concatenate
from intonnx.ir.ops.quantize import Requantize
from intonnx.ir.reasons import Code

from ._selection import quantize_selection


@quantizes("Concat", lifts=True)
def quantize_concat(boundary: Boundary) -> Refusal | None:
    """All inputs are joined as codes with the parameters of the result."""
    kinds = [boundary.type(i) for i in range(len(boundary.node.operands))]
    shape = boundary.result_type.shape or next((k.shape for k in kinds if k.shape), None)
    axis = int(boundary.attribute("axis", 1))
    if shape is None and axis < 0:
        return Refusal(
            code=Code.UNSUPPORTED_ATTRIBUTE,
            detail=f"axis {axis} of '{boundary.name(0)}', whose rank is not known: count it from "
            "the front",
        )
    axis = axis + len(shape) if shape is not None and axis < 0 else axis
    return quantize_selection(
        boundary, range(len(kinds)), lambda out: Concatenate(axis=axis, out=out)
    )


@imports("QLinearConcat", since=1, domain="com.microsoft")
def qlinear_concat(node: NodeView) -> None:
    """QLinearConcat: y_scale, y_zero_point, then x, x_scale, x_zero_point for each input."""
    storage = node.type(1).dtype
    out = node.params(0, 1, storage, rank=None, axis=None)
    operands: list[str] = []
    for index in range(2, len(node.proto.input), 3):
        x_params = node.params(index + 1, index + 2, node.type(index).dtype, rank=None, axis=None)
        if out is None or x_params is None:
            return node.keep_for_parameters()
        operands.append(node.codes(node.input(index), x_params))
    if out is None or not operands:
        raise ModelFailure("there is nothing to join")
    axis, rank = int(node.attribute("axis", 0)), node.type(2).rank
    if rank is None and axis < 0:
        raise ModelFailure(f"axis {axis} of '{node.input(2)}', whose rank is not known")
    if len(operands) == 1:
        node.emit(Requantize(out=out), operands)
    else:
        node.emit(Concatenate(axis=axis % rank if rank else axis, out=out), operands)
    return None
