"""Pow between DQ and Q."""

from __future__ import annotations

from intonnx.ir.graph import Node
from intonnx.ir.ops.power import Power

from ._binary import between
from .emitter import Emitter
from .registry import emitters


@emitters.register(Power)
def power(op: Power, node: Node, out: Emitter) -> None:
    """DQ -> Pow -> Q: no QLinear operator exists."""
    between("Pow", node, out)
