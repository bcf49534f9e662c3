"""Limits on codes."""

from __future__ import annotations

import numpy as np

from intonnx.ir.graph import Node
from intonnx.ir.ops.clip import Clip
from intonnx.ir.types import DType
from intonnx.protos import element_of_dtype

from .emitter import Emitter
from .registry import emitters


@emitters.register(Clip)
def clip(op: Clip, node: Node, out: Emitter) -> None:
    """Clip on 8-bit integers (opset 12); in the QDQ form on real values, which are exact.

    No QuantizeLinear makes sums or plain integers: they are clipped as they are in every form.
    """
    codes, result = node.operands[0], node.results[0]
    kind = out.type(codes)
    bounds = np.asarray([op.low, op.high])
    whole = kind.quant is None or kind.dtype.bits > 16
    if (whole or out.qlinear) and kind.dtype.bits in (8, 32, 64):
        low, high = (out.constant(b, "bound") for b in bounds.astype(kind.dtype.numpy))
        out.node("Clip", [out.operand(codes), low, high], [result])
    elif whole:
        element, wide = element_of_dtype(kind.dtype), element_of_dtype(DType.I32)
        low, high = (out.constant(b, "bound") for b in bounds.astype(np.int32))
        moved = out.value("Cast", [out.operand(codes)], f"{codes}.i32", to=wide)
        clipped = out.value("Clip", [moved, low, high], f"{result}.i32")
        out.node("Cast", [clipped], [result], to=element)
    else:
        params = kind.params
        reals = (bounds - params.scalar_zero_point).astype(np.float32) * params.scalar_scale
        low, high = (out.constant(b, "bound") for b in reals.astype(params.expressed.numpy))
        out.between(node, "Clip", [low, high])
