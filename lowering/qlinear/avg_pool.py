"""QLinearAveragePool, and AveragePool between DQ and Q."""

from __future__ import annotations

from intonnx.ir.graph import Node
from intonnx.ir.ops.avg_pool import AvgPool, AvgPool1d, AvgPool2d, AvgPool3d
from intonnx.lowering.pooling import has_windowed_kernel, spatial_sizes

from ._pool import attributes, between
from .emitter import CONTRIB, Emitter
from .registry import emitters


@emitters.register(AvgPool1d, AvgPool2d, AvgPool3d)
def avg_pool(op: AvgPool, node: Node, out: Emitter) -> None:
    """QLinearAveragePool where its kernel takes the types and means the same."""
    x = out.type(node.operands[0])
    fields = attributes(op, spatial_sizes(op, x.shape or ()))
    fields["count_include_pad"] = int(op.count_include_pad) or None
    has_kernel, last = has_windowed_kernel(op, x), op.channels_last
    if not (out.contrib and has_kernel):
        return between(node, out, "AveragePool", channels_last=last, fusible=has_kernel, **fields)
    return out.node(
        "QLinearAveragePool",
        [*out.quantized_operand(node.operands[0]), *out.quantization(op.out)],
        node.results,
        domain=CONTRIB,
        channels_last=int(last) or None,
        **fields,
    )
