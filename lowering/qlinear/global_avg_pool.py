"""QLinearGlobalAveragePool, and GlobalAveragePool between DQ and Q."""

from __future__ import annotations

from intonnx.ir.graph import Node
from intonnx.ir.ops.global_avg_pool import (
    GlobalAvgPool,
    GlobalAvgPool1d,
    GlobalAvgPool2d,
    GlobalAvgPool3d,
)
from intonnx.lowering.pooling import has_global_kernel

from ._pool import between
from .emitter import CONTRIB, Emitter
from .registry import emitters


@emitters.register(GlobalAvgPool1d, GlobalAvgPool2d, GlobalAvgPool3d)
def global_avg_pool(op: GlobalAvgPool, node: Node, out: Emitter) -> None:
    """QLinearGlobalAveragePool where its kernel takes the types and the multiplier."""
    has_kernel, last = has_global_kernel(op, out.type(node.operands[0])), op.channels_last
    if not (out.contrib and has_kernel):
        return between(node, out, "GlobalAveragePool", channels_last=last, fusible=has_kernel)
    return out.node(
        "QLinearGlobalAveragePool",
        [*out.quantized_operand(node.operands[0]), *out.quantization(op.out)],
        node.results,
        domain=CONTRIB,
        channels_last=int(last) or None,
    )
