"""Pad on codes."""

from __future__ import annotations

import numpy as np

from intonnx.ir.graph import Node
from intonnx.ir.ops.pad import Pad

from .emitter import Emitter
from .registry import emitters


@emitters.register(Pad)
def pad(op: Pad, node: Node, out: Emitter) -> None:
    """Pad on 8-bit integers (opset 13); in the QDQ form the constant is the fill's real value."""
    codes, result = node.operands[0], node.results[0]
    kind = out.type(codes)
    pads = out.constant(np.asarray([*op.before, *op.after], np.int64), "pads")
    if kind.quant is None or out.qlinear:
        fill = "" if op.fill is None else out.constant(kind.dtype.numpy.type(op.fill), "fill")
        out.node("Pad", [out.operand(codes), pads, fill], [result], mode=op.mode)
        return
    fill = ""
    if op.fill is not None:
        real = np.float32(op.fill - kind.params.scalar_zero_point) * kind.params.scalar_scale
        fill = out.constant(np.asarray(real, kind.params.expressed.numpy), "fill")
    out.between(node, "Pad", [pads, fill], mode=op.mode)
