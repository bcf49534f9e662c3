"""InstanceNormalization and GroupNormalization between DQ and Q."""

from __future__ import annotations

from intonnx.ir.graph import Node
from intonnx.ir.ops.instance_norm import GroupNorm, InstanceNorm

from ._normalization import factors
from .emitter import Emitter
from .registry import emitters


@emitters.register(InstanceNorm)
def instance_norm(op: InstanceNorm, node: Node, out: Emitter) -> None:
    """InstanceNormalization."""
    others, data = factors(node, out), node.operands[:1]
    out.between(node, "InstanceNormalization", others, operands=data, epsilon=op.epsilon)


@emitters.register(GroupNorm)
def group_norm(op: GroupNorm, node: Node, out: Emitter) -> None:
    """GroupNormalization (opset 21)."""
    others, data = factors(node, out), node.operands[:1]
    fields = {"num_groups": op.groups, "epsilon": op.epsilon}
    out.between(node, "GroupNormalization", others, operands=data, **fields)
