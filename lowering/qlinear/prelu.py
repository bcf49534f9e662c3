"""PRelu between DQ and Q."""

from __future__ import annotations

from intonnx.ir.graph import Node
from intonnx.ir.ops.prelu import Prelu

from ._binary import between
from .emitter import Emitter
from .registry import emitters


@emitters.register(Prelu)
def prelu(op: Prelu, node: Node, out: Emitter) -> None:
    """DQ -> PRelu -> Q: no QLinear operator exists."""
    between("PRelu", node, out)
