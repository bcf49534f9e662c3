"""Gather on codes."""

from __future__ import annotations

from intonnx.ir.graph import Node
from intonnx.ir.ops.gather import Gather

from ._mover import move
from .emitter import Emitter
from .registry import emitters


@emitters.register(Gather)
def gather(op: Gather, node: Node, out: Emitter) -> None:
    """Gather."""
    move("Gather", node, out, [out.operand(node.operands[1])], axis=op.axis)
