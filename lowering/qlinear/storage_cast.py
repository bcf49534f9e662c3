"""Codes with other parameters in the type: ONNX types have none, so this is an Identity."""

from __future__ import annotations

from intonnx.ir.graph import Node
from intonnx.ir.ops.storage_cast import StorageCast

from .emitter import Emitter
from .registry import emitters


@emitters.register(StorageCast)
def storage_cast(op: StorageCast, node: Node, out: Emitter) -> None:
    """Identity."""
    out.node("Identity", [out.operand(node.operands[0])], node.results)
