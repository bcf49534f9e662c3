"""Softmax, LogSoftmax and QLinearSoftmax."""

from __future__ import annotations

from intonnx.importer.node_view import NodeView
from intonnx.importer.qdq.boundary import Boundary
from intonnx.importer.registry import imports, quantizes
from intonnx.ir.graph import Refusal
from intonnx.ir.ops.softmax import Softmax
from intonnx.ir.reasons import Code
from intonnx.ir.types import DType

ONE_AXIS_SINCE = 13
"""From this opset on a row runs along one axis; before it, over all axes from `axis` on."""


@quantizes("Softmax", "LogSoftmax")
def quantize_softmax(boundary: Boundary) -> Refusal | None:
    """Exponentials from a table of code differences; their sum stays float32."""
    x = boundary.needs_activation(0)
    if isinstance(x, Refusal):
        return x
    if x.params.expressed is not DType.F32:
        return Refusal(
            code=Code.UNSUPPORTED_TYPE,
            detail=f"'{boundary.name(0)}' is {x.params.expressed}: use float32",
        )
    if not x.type.shape:
        return Refusal(
            code=Code.UNSUPPORTED_ATTRIBUTE,
            detail=f"the number of axes of '{x.name}' is not known, or 0: declare its shape",
        )
    if not all(out.per_tensor for out in boundary.quantizer_params()):
        return Refusal(
            code=Code.UNSUPPORTED_ATTRIBUTE,
            detail=f"'{boundary.node.results[0]}' is quantized per axis: quantize it per tensor",
        )
    rank, version = len(x.type.shape), boundary.op.version
    axis = int(boundary.attribute("axis", _default_axis(version)))
    first, flattened = _axes(axis, rank, version)
    logarithm = boundary.op.op_type == "LogSoftmax"
    return boundary.produced(
        lambda out: Softmax(axis=first, flattened=flattened, logarithm=logarithm, out=out),
        [x.name],
    )


@imports("QLinearSoftmax", since=1, domain="com.microsoft")
def qlinear_softmax(node: NodeView) -> None:
    """QLinearSoftmax: X, its scale and zero point, those of Y; `opset` decides about `axis`."""
    storage = node.type(0).dtype
    x = node.params(1, 2, storage, rank=None, axis=None)
    out = node.params(3, 4, storage, rank=None, axis=None)
    if x is None or out is None:
        return node.keep_for_parameters()
    rank = node.type(0).rank
    if not rank:
        return node.keep(
            Refusal(
                code=Code.UNSUPPORTED_ATTRIBUTE,
                detail=f"the number of axes of '{node.input(0)}' is not known, or 0",
            )
        )
    axis, flattened = _axes(int(node.attribute("axis", -1)), rank, int(node.attribute("opset", 13)))
    node.emit(Softmax(axis=axis, flattened=flattened, out=out), [node.codes(node.input(0), x)])
    return None


def _default_axis(version: int) -> int:
    return -1 if version >= ONE_AXIS_SINCE else 1


def _axes(axis: int, rank: int, version: int) -> tuple[int, bool]:
    """The axis from the front, and whether later axes belong to the row too."""
    first = axis + rank if axis < 0 else axis
    return first, version < ONE_AXIS_SINCE and first < rank - 1
