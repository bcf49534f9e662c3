"""Expand and Tile on codes."""

from __future__ import annotations

import numpy as np

from intonnx.ir.graph import Node
from intonnx.ir.ops.expand import Expand, Tile

from ._mover import move
from .emitter import Emitter
from .registry import emitters


@emitters.register(Expand, Tile)
def expand(op: Expand | Tile, node: Node, out: Emitter) -> None:
    """Expand or Tile, shape or repeats as an input."""
    sizes = op.shape if isinstance(op, Expand) else op.repeats
    if sizes is None:
        given = out.operand(node.operands[1])
    else:
        given = out.constant(np.asarray(sizes, np.int64), "sizes")
    move(type(op).__name__, node, out, [given])
