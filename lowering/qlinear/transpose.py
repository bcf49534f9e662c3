"""Transpose on codes."""

from __future__ import annotations

from intonnx.ir.graph import Node
from intonnx.ir.ops.transpose import Transpose
from intonnx.ir.types import DType

from ._mover import WHOLE_BYTES, move
from .emitter import Emitter
from .registry import emitters


@emitters.register(Transpose)
def transpose(op: Transpose, node: Node, out: Emitter) -> None:
    """Transpose, which moves 4-bit codes too."""
    move("Transpose", node, out, kernels=WHOLE_BYTES | {DType.U4, DType.I4}, perm=op.perm)
