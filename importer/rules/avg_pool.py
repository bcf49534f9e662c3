"""AveragePool and QLinearAveragePool."""

from __future__ import annotations

from intonnx.importer.node_view import NodeView
from intonnx.importer.qdq.boundary import Boundary
from intonnx.importer.registry import imports, quantizes
from intonnx.ir.graph import Refusal
from intonnx.ir.ops.avg_pool import AvgPool, AvgPool1d, AvgPool2d, AvgPool3d
from intonnx.ir.reasons import Code
from intonnx.ir.types import QuantParams, static_shape

from ._pool import rank_refusal, window

_BY_RANK: dict[int, type[AvgPool]] = {1: AvgPool1d, 2: AvgPool2d, 3: AvgPool3d}


@quantizes("AveragePool")
def quantize_average_pool(boundary: Boundary) -> Refusal | None:
    """The mean of dequantized codes, quantized by the parameters of the result."""
    x = boundary.needs_activation(0)
    if isinstance(x, Refusal):
        return x
    fields, shape = window(boundary.attribute), x.type.shape
    if fields is None or shape is None or len(shape) != len(fields["kernel"]) + 2:
        return rank_refusal(boundary.name(0), shape)
    count_include_pad = bool(boundary.attribute("count_include_pad", 0))

    def pool(out: QuantParams) -> AvgPool:
        made = _BY_RANK[len(shape) - 2](**fields, count_include_pad=count_include_pad, out=out)
        return made

    misfit = boundary.misfit(pool(x.params), [x.type])
    if misfit is not None:
        return misfit
    sizes = static_shape(shape[2:])
    # Below opset 19 onnxruntime divides by all of a kernel that is larger than the padded data.
    whole = count_include_pad and boundary.op.version < 19 and not fields["ceil_mode"]
    if whole and sizes is not None:
        return boundary.produced(lambda out: _whole_kernel(pool(out), sizes), [x.name])
    return boundary.produced(pool, [x.name])


@imports("QLinearAveragePool", since=1, domain="com.microsoft")
def qlinear_average_pool(node: NodeView) -> None:
    """QLinearAveragePool: x, x_scale, x_zero_point, y_scale, y_zero_point."""
    x_params = node.params(1, 2, node.type(0).dtype, rank=None, axis=None)
    y_params = node.params(3, 4, node.type(0).dtype, rank=None, axis=None)
    if x_params is None or y_params is None:
        return node.keep_for_parameters()
    fields, shape = window(node.attribute), node.type(0).shape
    if fields is None or shape is None or len(shape) != len(fields["kernel"]) + 2:
        return node.keep(rank_refusal(node.input(0), shape))
    fields["dilations"] = (1,) * (len(shape) - 2)
    last = bool(node.attribute("channels_last", 0))
    op = _BY_RANK[len(shape) - 2](
        **fields,
        count_include_pad=bool(node.attribute("count_include_pad", 0)),
        channels_last=last,
        out=y_params,
    )
    sizes = static_shape(shape[1:-1] if last else shape[2:])
    if op.count_include_pad and op.ceil_mode:
        if sizes is None:
            return node.keep(_unknown_count(node))
        op = _whole_kernel(op, sizes)
    node.emit(op, [node.codes(node.input(0), x_params)])
    return None


def _whole_kernel(op: AvgPool, sizes: tuple[int, ...]) -> AvgPool:
    """Let the padding reach the cells beyond it, so that they count as it does.

    QLinearAveragePool counts them, and so does AveragePool before opset 19 without `ceil_mode`.
    """
    overhang = op.overhang(sizes)
    if not any(overhang):
        return op
    pads = op.padding(sizes)
    after = [pad + more for pad, more in zip(pads[op.spatial :], overhang, strict=True)]
    fields = {"pads": (*pads[: op.spatial], *after), "auto_pad": "NOTSET", "ceil_mode": False}
    return op.model_copy(update=fields)


def _unknown_count(node: NodeView) -> Refusal:
    return Refusal(
        code=Code.UNSUPPORTED_ATTRIBUTE,
        detail=f"ceil_mode with count_include_pad needs the sizes of '{node.input(0)}': give it a "
        "fixed shape",
    )
