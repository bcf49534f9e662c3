"""Slice on codes."""

from __future__ import annotations

import numpy as np

from intonnx.ir.graph import Node
from intonnx.ir.ops.slice import Slice

from ._mover import move
from .emitter import Emitter
from .registry import emitters


@emitters.register(Slice)
def slice_of(op: Slice, node: Node, out: Emitter) -> None:
    """Slice, the bounds as inputs (opset 10)."""
    bounds = {"starts": op.starts, "ends": op.ends, "axes": op.axes, "steps": op.steps}
    names = [out.constant(np.asarray(v, np.int64), name) for name, v in bounds.items()]
    move("Slice", node, out, names)
