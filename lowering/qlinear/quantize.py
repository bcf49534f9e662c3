"""QuantizeLinear, DequantizeLinear, and a requantize as both."""

from __future__ import annotations

import numpy as np

from intonnx.ir.changes import Moved
from intonnx.ir.graph import Node
from intonnx.ir.ops.quantize import Dequantize, DynamicQuantize, Quantize, Requantize
from intonnx.ir.storage import moved_params
from intonnx.ir.types import DType, QuantParams
from intonnx.lowering.requantize import multiplier, requantize_table
from intonnx.protos import element_of_dtype

from ._table import look_up
from ._weight_only import only_weights
from .emitter import CONTRIB, Emitter
from .registry import emitters


@emitters.register(Quantize)
def quantize(op: Quantize, node: Node, out: Emitter) -> None:
    """QuantizeLinear."""
    out.quantize(out.operand(node.operands[0]), op.out, node.results[0])


@emitters.register(Dequantize)
def dequantize(op: Dequantize, node: Node, out: Emitter) -> None:
    """DequantizeLinear; an accumulator's product has the same one rounding.

    Scales known at run time are multiplied: Cast -> Mul. A bias is added in float32.
    """
    if only_weights(node, out):
        return
    x, scale, other, bias = [*node.operands, "", "", ""][:4]
    result = node.results[0]
    real = out.fresh(f"{result}.unbiased") if bias else result
    if scale:
        _multiplied(op, (x, scale, other), real, out)
    else:
        out.dequantize(x, real)
    if bias:
        out.node("Add", [real, out.operand(bias)], [result])


def _multiplied(op: Dequantize, operands: tuple[str, str, str], real: str, out: Emitter) -> None:
    """Cast, then one product with the joined scales, or one after the other."""
    x, scale, other = (out.operand(name) if name else "" for name in operands)
    cast = out.value("Cast", [x], f"{real}.sum", to=element_of_dtype(DType.F32))
    if other and op.in_turn:
        cast, scale = out.value("Mul", [cast, scale], f"{real}.scaled"), other
    elif other:
        scale = out.value("Mul", [scale, other], f"{real}.scale")
    out.node("Mul", [cast, scale], [real])


@emitters.register(Requantize)
def requantize(op: Requantize, node: Node, out: Emitter) -> None:
    """A table for 8-bit codes; for an accumulator one product, then a QuantizeLinear by 1.

    DQ -> Q would mean the same, but onnxruntime merges two unequal pairs in a row into one. For
    wider codes the two are kept apart.
    """
    codes, result = node.operands[0], node.results[0]
    if out.qlinear and requantized_by_table(codes, op.out, result, out):
        return
    params, rank = out.params(codes), len(out.type(codes).shape or ())
    factors = multiplier(params, op.out, rank)
    if params.storage is not DType.I32 or factors is None or not out.qlinear:
        real = out.real(codes)
        out.quantize(out.apart(real, result), op.out, result)
        return
    sums, zero = out.operand(codes), params.along(rank)[1]
    if np.any(zero):
        # The difference may need more than 32 bits.
        wide = out.value("Cast", [sums], f"{result}.wide", to=element_of_dtype(DType.I64))
        sums = out.value("Sub", [wide, out.constant(zero, "zero_point")], f"{result}.centred")
    real = out.value("Cast", [sums], f"{result}.sum", to=element_of_dtype(DType.F32))
    scaled = out.value("Mul", [real, out.constant(factors, "multiplier")], f"{result}.scaled")
    out.quantize_scaled(scaled, params.scale, op.out, result)


def requantized_by_table(codes: str, params: QuantParams, result: str, out: Emitter) -> bool:
    """Write the codes `result`, those of `codes` with other parameters, if both have 8 bits.

    A QLinearConcat of one input is a table look-up, else it is a look-up in a constant one.
    """
    x, rank = out.params(codes), out.type(codes).rank
    if not (x.per_tensor and params.per_tensor and x.storage.bits == params.storage.bits == 8):
        return False
    plain = x.expressed is params.expressed is DType.F32 and (params.qmin, params.qmax) == (
        params.storage.low,
        params.storage.high,
    )
    if out.contrib and plain and x.storage is params.storage and rank:
        inputs = [*out.quantization(params), *out.quantized_operand(codes)]
        out.node("QLinearConcat", inputs, [result], domain=CONTRIB, axis=rank - 1)
        return True
    if x.storage is DType.I8 and moved_params(x) == params:
        _note_move(codes, x, params, result, out)
        out.moved_up(out.operand(codes), result)
        return True
    if params.storage is DType.I8 and moved_params(params) == x:
        _note_move(codes, x, params, result, out)
        out.moved_down(out.operand(codes), result)
        return True
    table = out.constant(requantize_table(x, params), f"{result}.table")
    look_up(out.operand(codes), out.type(codes), table, result, out)
    return True


def _note_move(codes: str, x: QuantParams, to: QuantParams, result: str, out: Emitter) -> None:
    out.moves[result] = Moved(
        source=out.operand(codes),
        scale=float(x.scalar_scale),
        zero=x.scalar_zero_point,
        to_zero=to.scalar_zero_point,
    )


@emitters.register(DynamicQuantize)
def dynamic_quantize(op: DynamicQuantize, node: Node, out: Emitter) -> None:
    """DynamicQuantizeLinear."""
    out.node("DynamicQuantizeLinear", [out.operand(node.operands[0])], node.results)
