"""Reshape, Flatten, Squeeze and Unsqueeze on codes."""

from __future__ import annotations

import numpy as np

from intonnx.ir.graph import Node
from intonnx.ir.ops.reshape import Flatten, Reshape, Squeeze, Unsqueeze

from ._mover import move
from .emitter import Emitter
from .registry import emitters


@emitters.register(Reshape)
def reshape(op: Reshape, node: Node, out: Emitter) -> None:
    """Reshape; `allowzero` came with opset 14, and before it no 0 could be a size."""
    if op.shape is None:
        shape = out.operand(node.operands[1])
    else:
        shape = out.constant(np.asarray(op.shape, np.int64), "shape")
    move("Reshape", node, out, [shape], allowzero=1 if op.allowzero else None)


@emitters.register(Flatten)
def flatten(op: Flatten, node: Node, out: Emitter) -> None:
    """Flatten."""
    move("Flatten", node, out, axis=op.axis)


@emitters.register(Squeeze)
def squeeze(op: Squeeze, node: Node, out: Emitter) -> None:
    """Squeeze, the axes as an input (opset 13)."""
    axes = "" if op.axes is None else out.constant(np.asarray(op.axes, np.int64), "axes")
    move("Squeeze", node, out, [axes])


@emitters.register(Unsqueeze)
def unsqueeze(op: Unsqueeze, node: Node, out: Emitter) -> None:
    """Unsqueeze, the axes as an input (opset 13)."""
    move("Unsqueeze", node, out, [out.constant(np.asarray(op.axes, np.int64), "axes")])
