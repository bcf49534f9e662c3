"""GatherElements and GatherND on codes."""

from __future__ import annotations

from intonnx.ir.graph import Node
from intonnx.ir.ops.gather_elements import GatherElements, GatherNd

from ._mover import move
from .emitter import Emitter
from .registry import emitters


@emitters.register(GatherElements)
def gather_elements(op: GatherElements, node: Node, out: Emitter) -> None:
    """GatherElements."""
    move("GatherElements", node, out, [out.operand(node.operands[1])], axis=op.axis)


@emitters.register(GatherNd)
def gather_nd(op: GatherNd, node: Node, out: Emitter) -> None:
    """GatherND; without batch axes as opset 11 has it."""
    batch = op.batch_dims or None
    move("GatherND", node, out, [out.operand(node.operands[1])], batch_dims=batch)
