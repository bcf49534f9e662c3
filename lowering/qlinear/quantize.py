"""QuantizeLinear, DequantizeLinear, and a requantize as both."""

from __future__ import annotations

import numpy as np

from intonnx.ir.graph import Node
from intonnx.ir.ops.quantize import Dequantize, DynamicQuantize, Quantize, Requantize
from intonnx.ir.types import DType
from intonnx.lowering.requantize import multiplier
from intonnx.protos import element_of_dtype

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
    params, rank = out.params(codes), len(out.type(codes).shape or ())
    factors = multiplier(params, op.out, rank)
    if params.storage is not DType.I32 or factors is None or not out.qlinear:
        out.quantize(out.real(codes), op.out, result)
        return
    sums, zero = out.operand(codes), params.along(rank)[1]
    if np.any(zero):
        # The difference may need more than 32 bits.
        wide = out.value("Cast", [sums], f"{result}.wide", to=element_of_dtype(DType.I64))
        sums = out.value("Sub", [wide, out.constant(zero, "zero_point")], f"{result}.centred")
    real = out.value("Cast", [sums], f"{result}.sum", to=element_of_dtype(DType.F32))
    scaled = out.value("Mul", [real, out.constant(factors, "multiplier")], f"{result}.scaled")
    update = {"scale": np.ones_like(op.out.scale), "expressed": DType.F32}
    out.quantize(scaled, op.out.model_copy(update=update), result)


@emitters.register(DynamicQuantize)
def dynamic_quantize(op: DynamicQuantize, node: Node, out: Emitter) -> None:
    """DynamicQuantizeLinear."""
    out.node("DynamicQuantizeLinear", [out.operand(node.operands[0])], node.results)
