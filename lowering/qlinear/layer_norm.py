"""LayerNormalization and RMSNormalization between DQ and Q."""

from __future__ import annotations

from intonnx.ir.graph import Node
from intonnx.ir.ops.layer_norm import LayerNorm, RmsNorm

from ._normalization import factors
from .emitter import Emitter
from .registry import emitters


@emitters.register(LayerNorm)
def layer_norm(op: LayerNorm, node: Node, out: Emitter) -> None:
    """LayerNormalization (opset 17)."""
    _last_axes("LayerNormalization", op, node, out)


@emitters.register(RmsNorm)
def rms_norm(op: RmsNorm, node: Node, out: Emitter) -> None:
    """RMSNormalization (opset 23)."""
    _last_axes("RMSNormalization", op, node, out)


def _last_axes(op_type: str, op: LayerNorm | RmsNorm, node: Node, out: Emitter) -> None:
    others = factors(node, out)
    data = node.operands[:1]
    out.between(node, op_type, others, operands=data, axis=op.axis, epsilon=op.epsilon)
