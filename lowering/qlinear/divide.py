"""Div between DQ and Q."""

from __future__ import annotations

from intonnx.ir.graph import Node
from intonnx.ir.ops.divide import Divide

from ._binary import between
from .emitter import Emitter
from .registry import emitters


@emitters.register(Divide)
def divide(op: Divide, node: Node, out: Emitter) -> None:
    """DQ -> Div -> Q: no QLinear operator exists."""
    between("Div", node, out)
