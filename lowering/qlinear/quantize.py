"""QuantizeLinear, DequantizeLinear, and a requantize as both."""

from __future__ import annotations

import numpy as np

from intonnx.ir.graph import Node
from intonnx.ir.ops.quantize import Dequantize, DynamicQuantize, Quantize, Requantize
from intonnx.ir.types import DType

from .emitter import Emitter
from .registry import emitters


@emitters.register(Quantize)
def quantize(op: Quantize, node: Node, out: Emitter) -> None:
    """QuantizeLinear."""
    out.quantize(out.operand(node.operands[0]), op.out, node.results[0])


@emitters.register(Dequantize)
def dequantize(op: Dequantize, node: Node, out: Emitter) -> None:
    """DequantizeLinear; an accumulator's product has the same one rounding."""
    out.dequantize(node.operands[0], node.results[0])


@emitters.register(Requantize)
def requantize(op: Requantize, node: Node, out: Emitter) -> None:
    """DQ -> Q for codes; for an accumulator one float32 product, then a QuantizeLinear by 1."""
    codes, result = node.operands[0], node.results[0]
    params = out.params(codes)
    if params.storage is not DType.I32 or not out.qlinear:
        out.quantize(out.real(codes), op.out, result)
        return
    rank = len(out.type(codes).shape or ())
    zero_based = out.value("Cast", [out.operand(codes)], f"{result}.sum", to=1)
    k = params.along(rank)[0] / op.out.along(rank)[0]
    multiplier = out.constant(np.asarray(k, np.float32), "multiplier")
    scaled = out.value("Mul", [zero_based, multiplier], f"{result}.scaled")
    update = {"scale": np.ones_like(op.out.scale), "expressed": DType.F32}
    ones = op.out.model_copy(update=update)
    out.quantize(scaled, ones, result)


@emitters.register(DynamicQuantize)
def dynamic_quantize(op: DynamicQuantize, node: Node, out: Emitter) -> None:
    """DynamicQuantizeLinear."""
    out.node("DynamicQuantizeLinear", [out.operand(node.operands[0])], node.results)
