"""Limits on codes."""

from __future__ import annotations

import numpy as np

from intonnx.ir.graph import Node
from intonnx.ir.ops.clip import Clip

from .emitter import Emitter
from .registry import emitters


@emitters.register(Clip)
def clip(op: Clip, node: Node, out: Emitter) -> None:
    """Clip on 8-bit integers (opset 12); in the QDQ form on real values, which are exact.

    No QuantizeLinear makes sums or plain integers: they are clipped as they are in every form.
    """
    codes, result = node.operands[0], node.results[0]
    kind = out.type(codes)
    whole = kind.quant is None or kind.dtype.bits > 16
    if whole or (out.qlinear and kind.dtype.bits == 8):
        out.limit(out.operand(codes), (op.low, op.high), kind.dtype, result)
        return
    params = kind.params
    bounds = np.asarray([op.low, op.high])
    reals = (bounds - params.scalar_zero_point).astype(np.float32) * params.scalar_scale
    low, high = (out.constant(b, "bound") for b in reals.astype(params.expressed.numpy))
    out.between(node, "Clip", [low, high])
