"""Reductions: exact sums of whole numbers, largest and smallest codes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from intonnx.ir.ops.reduce import Mean, ReduceMax, ReduceMin, Sum
from intonnx.ir.types import Array, QuantParams, TensorType, static_shape
from intonnx.lowering.reductions import INT32_LIMIT, mean_multiplier
from intonnx.lowering.requantize import round_to_codes

from ._fixed_mean import FixedMean
from .kernel import Context, Kernel, kernels


@kernels.register(Sum)
def sum_of_codes(op: Sum, context: Context) -> Kernel:
    """The sum itself, int32 where it fits for the sizes that come."""
    x = context.operand(0)
    return lambda operands: (_sums(operands[0], x, op.axes, op.keepdims),)


@kernels.register(Mean)
def mean(op: Mean, context: Context) -> Kernel:
    """f32(sum) * f32(x.scale / (out.scale * count)); in `qdq` the float operators one by one."""
    x = context.operand(0)
    if context.numerics == "fixed":
        return _fixed_mean(op, x)

    def run(operands: Sequence[Any]) -> tuple[Array, ...]:
        codes: Array = operands[0]
        count = math.prod(codes.shape[axis] for axis in op.axes)
        v = np.asarray(_sums(codes, x, op.axes, op.keepdims), np.float32)
        k = mean_multiplier(x.params, op.out, count) if context.numerics == "qlinear" else None
        return (_rounded(v, k, count, x.params, op.out),)

    return run


def _fixed_mean(op: Mean, x: TensorType) -> Kernel:
    mean = FixedMean(x.params, op.out)
    known = None if x.shape is None else static_shape(op.counted(x.shape))
    if known is not None:
        mean.prepare(np.array(math.prod(known)))

    def run(operands: Sequence[Any]) -> tuple[Array, ...]:
        codes: Array = operands[0]
        sums = _sums(codes, x, op.axes, op.keepdims)
        count = math.prod(codes.shape[axis] for axis in op.axes)
        return (mean(sums, np.array(count)),)

    return run


def _rounded(v: Array, k: np.float32 | None, count: int, x: QuantParams, out: QuantParams) -> Array:
    with np.errstate(all="ignore"):
        if k is not None:
            v *= k
        else:
            v *= x.scalar_scale
            v /= np.float32(count)
            v /= out.scalar_scale
    return round_to_codes(v, out)


def _sums(codes: Array, x: TensorType, axes: tuple[int, ...], keepdims: bool) -> Array:
    """Sums of (code - zero point): of the codes first, which are narrow, then the zero points."""
    count = math.prod(codes.shape[axis] for axis in axes)
    params = x.params
    zero, largest = params.scalar_zero_point, max(abs(params.storage.low), params.storage.high)
    # Twice the bound of the codes alone holds the difference too.
    dtype = np.dtype(np.int32 if 2 * count * largest < INT32_LIMIT else np.int64)
    sums = codes.sum(axis=axes, dtype=dtype, keepdims=keepdims)
    return np.asarray(sums - dtype.type(zero * count))


@kernels.register(ReduceMax, ReduceMin)
def extremum(op: ReduceMax | ReduceMin, context: Context) -> Kernel:
    """A maximum or minimum of codes; of none it is the end of the storage type's range."""
    dtype = context.operand(0).dtype
    largest = isinstance(op, ReduceMax)
    function: Callable[..., Any] = np.max if largest else np.min
    initial = dtype.low if largest else dtype.high

    def run(operands: Sequence[Any]) -> tuple[Array, ...]:
        found = function(operands[0], axis=op.axes, keepdims=op.keepdims, initial=initial)
        return (np.asarray(found),)

    return run
