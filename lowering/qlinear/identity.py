"""Identity on codes."""

from __future__ import annotations

from intonnx.ir.graph import Node
from intonnx.ir.ops.identity import Identity

from .emitter import Emitter
from .registry import emitters


@emitters.register(Identity)
def identity(op: Identity, node: Node, out: Emitter) -> None:
    """Identity, in every form: nothing is computed."""
    out.node("Identity", [out.operand(node.operands[0])], node.results)
