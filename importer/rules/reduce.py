"""ReduceMean, ReduceSum, ReduceMax and ReduceMin; QLinearReduceMean of com.microsoft."""

from __future__ import annotations

from intonnx.importer.node_view import NodeView
from intonnx.importer.qdq.boundary import Boundary
from intonnx.importer.qdq.codes import OnCodes, whole
from intonnx.importer.registry import commutes, imports, quantizes
from intonnx.ir.graph import Refusal
from intonnx.ir.ops.identity import Identity
from intonnx.ir.ops.reduce import Mean, ReduceMax, ReduceMin, Sum
from intonnx.ir.reasons import Code
from intonnx.ir.types import QuantParams

from ._integers import integers
from ._results import produced

_SUM_AXES_SINCE, _AXES_SINCE = 13, 18
"""From these opsets on the axes are an input: of ReduceSum, and of all others."""


@quantizes("ReduceMean")
def quantize_reduce_mean(boundary: Boundary) -> Refusal | None:
    """The mean of codes, quantized by the parameters of the result."""
    x, axes = boundary.needs_activation(0), _axes(boundary)
    if isinstance(x, Refusal):
        return x
    if isinstance(axes, Refusal):
        return axes
    if axes is None:
        boundary.moved([x.name])
        return None
    keepdims = _keepdims(boundary)
    return produced(boundary, lambda out: Mean(axes=axes, keepdims=keepdims, out=out), [x.name])


@quantizes("ReduceSum")
def quantize_reduce_sum(boundary: Boundary) -> Refusal | None:
    """The sum of codes is an accumulator with their scale."""
    x, axes = boundary.needs_activation(0), _axes(boundary)
    if isinstance(x, Refusal):
        return x
    if isinstance(axes, Refusal):
        return axes
    if axes is None:
        boundary.moved([x.name])
        return None
    op = Sum(axes=axes, keepdims=_keepdims(boundary))
    misfit = boundary.misfit(op, [x.type])
    if misfit is not None:
        return misfit
    boundary.accumulated(boundary.emit(op, [x.name], f"{boundary.node.results[0]}.accumulator"))
    return None


@commutes("ReduceMax", "ReduceMin")
def extremum_on_codes(
    boundary: Boundary, params: QuantParams | None, exact: bool
) -> OnCodes | Refusal:
    """The largest code stands for the largest value, as scales are positive."""
    axes = _axes(boundary)
    if isinstance(axes, Refusal):
        return axes
    if axes is None:
        return OnCodes(Identity())
    kind = ReduceMax if boundary.op.op_type == "ReduceMax" else ReduceMin
    return whole(boundary, params, kind(axes=axes, keepdims=_keepdims(boundary)))


@imports("QLinearReduceMean", since=1, domain="com.microsoft")
def qlinear_reduce_mean(node: NodeView) -> None:
    """QLinearReduceMean: data, its scale and zero point, those of the result."""
    storage, rank = node.type(0).dtype, node.type(0).rank
    x = node.params(1, 2, storage, rank=None, axis=None)
    out = node.params(3, 4, storage, rank=None, axis=None)
    if x is None or out is None:
        return node.keep_for_parameters()
    if rank is None:
        return node.keep(_unknown_rank(node.input(0)))
    axes = tuple(node.attribute("axes", ())) or tuple(range(rank))
    op = Mean(axes=axes, keepdims=bool(node.attribute("keepdims", 1)), out=out)
    node.emit(op, [node.codes(node.input(0), x)])
    return None


def _axes(boundary: Boundary) -> tuple[int, ...] | Refusal | None:
    """The axes that are reduced, all of them where none is given; None where none is meant."""
    since = _SUM_AXES_SINCE if boundary.op.op_type == "ReduceSum" else _AXES_SINCE
    axes = integers(boundary, 1, "axes", "axes", since=since)
    rank = boundary.type(0).rank
    if rank is None:
        return _unknown_rank(boundary.name(0))
    if axes:
        return axes
    if boundary.op.version >= since and boundary.attribute("noop_with_empty_axes", 0):
        return None
    return tuple(range(rank))


def _keepdims(boundary: Boundary) -> bool:
    return bool(boundary.attribute("keepdims", 1))


def _unknown_rank(name: str) -> Refusal:
    return Refusal(
        code=Code.UNSUPPORTED_ATTRIBUTE,
        detail=f"the number of axes of '{name}' is not known: declare its shape",
    )
