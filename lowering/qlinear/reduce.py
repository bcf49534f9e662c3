"""Sums of integers and one multiplier; ReduceMax and ReduceMin on codes."""

from __future__ import annotations

import math

import numpy as np

from intonnx.ir.graph import Node
from intonnx.ir.ops.reduce import Mean, ReduceMax, ReduceMin, Sum
from intonnx.ir.types import DType, TensorType, static_shape
from intonnx.lowering.reductions import fits_int32, mean_multiplier, mean_scale
from intonnx.protos import element_of_dtype

from ._accumulator import between, centred
from ._reduction import reduced_axes
from .emitter import Emitter
from .registry import emitters

_KERNELS = frozenset({DType.U8, DType.I8, DType.I32, DType.I64})
"""What ReduceMax and ReduceMin of onnxruntime 1.32 take; ONNX has no 16-bit ones."""


@emitters.joins(Sum)
def join_sum(op: Sum, node: Node, consumer: Node, out: Emitter) -> bool:
    """DQ -> ReduceSum (-> Q) in the QDQ form, and where sums of int32 may overflow."""
    if out.qlinear and _fits(op, out.type(node.operands[0])):
        return False
    axes = out.constant(np.asarray(op.axes, np.int64), "axes")
    return between(node, consumer, out, "ReduceSum", [axes], keepdims=int(op.keepdims))


@emitters.register(Sum)
def sum_of_codes(op: Sum, node: Node, out: Emitter) -> None:
    """ReduceSum of whole numbers: the accumulator itself."""
    fits = _fits(op, out.type(node.operands[0]))
    total = _integer_sum(op, node, out, node.results[0] if fits else "")
    if not fits:
        out.node("Cast", [total], node.results, to=element_of_dtype(DType.I32))


@emitters.register(Mean)
def mean(op: Mean, node: Node, out: Emitter) -> None:
    """An exact sum and one multiplier where the count is known, else DQ -> ReduceMean -> Q."""
    x, result = out.type(node.operands[0]), node.results[0]
    sizes = static_shape(op.counted(x.shape or ()))
    k = None if sizes is None else mean_multiplier(x.params, op.out, math.prod(sizes))
    if not out.qlinear or k is None or not _fits(op, x):
        others, attributes = reduced_axes(op.axes, op.keepdims, out)
        return out.between(node, "ReduceMean", others, **attributes)
    total = _integer_sum(op, node, out, "")
    real = out.value("Cast", [total], f"{result}.real_sum", to=element_of_dtype(DType.F32))
    scaled = out.value("Mul", [real, out.constant(np.asarray(k), "multiplier")], f"{result}.scaled")
    sums = mean_scale(k, op.out)
    return out.quantize_scaled(scaled, sums, op.out, result)


@emitters.register(ReduceMax, ReduceMin)
def extremum(op: ReduceMax | ReduceMin, node: Node, out: Emitter) -> None:
    """The operator on codes where there is a kernel; other codes are dequantized, in order."""
    kind, op_type = out.type(node.operands[0]), type(op).__name__
    others, attributes = reduced_axes(op.axes, op.keepdims, out)
    narrow = kind.quant is not None and kind.dtype.bits <= 16
    if narrow and not (out.qlinear and kind.dtype in _KERNELS):
        return out.between(node, op_type, others, **attributes)
    return out.node(op_type, [out.operand(node.operands[0]), *others], node.results, **attributes)


def _fits(op: Sum | Mean, x: TensorType) -> bool:
    return fits_int32(x, op.counted(x.shape or ()))


def _integer_sum(op: Sum | Mean, node: Node, out: Emitter, result: str) -> str:
    """ReduceSum of code - zero point, under the name `result` or a fresh one."""
    fits = _fits(op, out.type(node.operands[0]))
    whole = centred(node.operands[0], out, DType.I32 if fits else DType.I64)
    axes = out.constant(np.asarray(op.axes, np.int64), "axes")
    result = result or out.fresh(f"{node.results[0]}.sum")
    out.node("ReduceSum", [whole, axes], [result], keepdims=int(op.keepdims))
    return result
