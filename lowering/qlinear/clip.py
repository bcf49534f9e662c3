"""Limits on codes."""

from __future__ import annotations

import numpy as np

from intonnx.ir.graph import Node
from intonnx.ir.ops.clip import Clip

from .emitter import Emitter
from .registry import emitters


@emitters.register(Clip)
def clip(op: Clip, node: Node, out: Emitter) -> None:
    """Clip on 8-bit integers (opset 12); in the QDQ form on real values, which are exact."""
    codes, result = node.operands[0], node.results[0]
    kind = out.type(codes)
    bounds = np.asarray([op.low, op.high])
    if out.qlinear and kind.dtype.bits in (8, 32, 64):
        low, high = (out.constant(b, "bound") for b in bounds.astype(kind.dtype.numpy))
        out.node("Clip", [out.operand(codes), low, high], [result])
        return
    params = kind.params
    reals = (bounds - params.scalar_zero_point).astype(np.float32) * params.scalar_scale
    low, high = (out.constant(b, "bound") for b in reals.astype(params.expressed.numpy))
    out.between(node, "Clip", [low, high])
