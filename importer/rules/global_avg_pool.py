"""GlobalAveragePool and QLinearGlobalAveragePool."""

from __future__ import annotations

from intonnx.importer.node_view import NodeView
from intonnx.importer.qdq.boundary import Boundary
from intonnx.importer.registry import imports, quantizes
from intonnx.ir.graph import Refusal
from intonnx.ir.ops.global_avg_pool import (
    GlobalAvgPool,
    GlobalAvgPool1d,
    GlobalAvgPool2d,
    GlobalAvgPool3d,
)

from ._pool import rank_refusal

_BY_RANK: dict[int, type[GlobalAvgPool]] = {
    3: GlobalAvgPool1d,
    4: GlobalAvgPool2d,
    5: GlobalAvgPool3d,
}


@quantizes("GlobalAveragePool")
def quantize_global_average_pool(boundary: Boundary) -> Refusal | None:
    """An exact sum of codes and one multiplier to the parameters of the result."""
    x = boundary.needs_activation(0)
    if isinstance(x, Refusal):
        return x
    op = _BY_RANK.get(x.type.rank or 0)
    if op is None:
        return rank_refusal(boundary.name(0), x.type.shape)
    return boundary.produced(lambda out: op(out=out), [x.name])


@imports("QLinearGlobalAveragePool", since=1, domain="com.microsoft")
def qlinear_global_average_pool(node: NodeView) -> None:
    """QLinearGlobalAveragePool: x, x_scale, x_zero_point, y_scale, y_zero_point."""
    x_params = node.params(1, 2, node.type(0).dtype, rank=None, axis=None)
    y_params = node.params(3, 4, node.type(0).dtype, rank=None, axis=None)
    if x_params is None or y_params is None:
        return node.keep_for_parameters()
    op = _BY_RANK.get(node.type(0).rank or 0)
    if op is None:
        return node.keep(rank_refusal(node.input(0), node.type(0).shape))
    channels_last = bool(node.attribute("channels_last", 0))
    x = node.codes(node.input(0), x_params)
    node.emit(op(channels_last=channels_last, out=y_params), [x])
    return None
