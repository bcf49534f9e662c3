"""Means over all spatial axes: exact sums and one multiplier."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from intonnx.ir.ops.global_avg_pool import (
    GlobalAvgPool,
    GlobalAvgPool1d,
    GlobalAvgPool2d,
    GlobalAvgPool3d,
)
from intonnx.ir.types import Array, QuantParams, TensorType, static_shape
from intonnx.lowering.pooling import global_multiplier, has_global_kernel, spatial_sizes
from intonnx.lowering.requantize import round_to_codes

from ._fixed_mean import FixedMean
from ._pool import as_given, channels_first, dequantized
from .exact import INT32_LIMIT
from .kernel import Context, Kernel, kernels

_LANES = 4


@kernels.register(GlobalAvgPool1d, GlobalAvgPool2d, GlobalAvgPool3d)
def global_avg_pool(op: GlobalAvgPool, context: Context) -> Kernel:
    """QLinearGlobalAveragePool where onnxruntime has it, else and in `qdq` the literal mean."""
    x = context.operand(0)
    if context.numerics == "fixed":
        return _fixed(op, x)
    fused = context.numerics == "qlinear" and has_global_kernel(op, x)
    mean = mean_of_codes if fused else _mean_of_values

    def run(operands: Sequence[Any]) -> tuple[Array, ...]:
        codes = channels_first(operands[0], op.channels_last)
        return (as_given(mean(codes, x.params, op.out), op.channels_last),)

    return run


def _fixed(op: GlobalAvgPool, x: TensorType) -> Kernel:
    mean = FixedMean(x.params, op.out)
    sizes = None if x.shape is None else static_shape(spatial_sizes(op, x.shape))
    if sizes is not None:
        mean.prepare(np.array(math.prod(sizes)))

    def run(operands: Sequence[Any]) -> tuple[Array, ...]:
        codes = channels_first(operands[0], op.channels_last)
        count = math.prod(codes.shape[2:])
        return (as_given(mean(_sums(codes, x.params), np.array(count)), op.channels_last),)

    return run


def mean_of_codes(codes: Array, x: QuantParams, out: QuantParams) -> Array:
    """(sum - zero_point * count) * (x.scale / (out.scale * count)) for codes [N, C, *spatial]."""
    v = _sums(codes, x).astype(np.float32)
    v *= global_multiplier(x, out, math.prod(codes.shape[2:]))
    return round_to_codes(v, out)


def _sums(codes: Array, x: QuantParams) -> Array:
    """int64 sums of (code - zero point) [N, C, 1, ...] for codes [N, C, *spatial]."""
    count = math.prod(codes.shape[2:])
    largest = max(abs(x.storage.low), x.storage.high) * count
    dtype = np.int32 if largest < INT32_LIMIT else np.int64
    sums = codes.sum(tuple(range(2, codes.ndim)), dtype, keepdims=True)
    whole: Array = sums.astype(np.int64) - x.scalar_zero_point * count
    return whole


def _mean_of_values(codes: Array, x: QuantParams, out: QuantParams) -> Array:
    """DQ -> GlobalAveragePool -> Q as onnxruntime adds: four lanes, then their sum, then the rest.

    Measured with optimization off, which is what other CPUs need not do.
    """
    count = math.prod(codes.shape[2:])
    rows = dequantized(codes, x).reshape(-1, count)
    steps = count // _LANES
    lanes = np.zeros((len(rows), _LANES), np.float32)
    if steps and len(rows):
        by_step = rows[:, : steps * _LANES].reshape(-1, steps, _LANES).swapaxes(0, 1)
        # A sum over the first of contiguous axes adds row to row, in order.
        lanes = np.ascontiguousarray(by_step).sum(axis=0)
    total = (lanes[:, 0] + lanes[:, 2]) + (lanes[:, 1] + lanes[:, 3])
    for i in range(steps * _LANES, count):
        total += rows[:, i]
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        total /= np.float32(count)
        total /= out.scalar_scale
    ones = (1,) * (codes.ndim - 2)
    return round_to_codes(total.reshape(*codes.shape[:2], *ones), out)
