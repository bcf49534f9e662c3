"""Which average pools onnxruntime has a QLinear kernel for: both lowerings follow it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from intonnx.ir.ops.avg_pool import AvgPool
from intonnx.ir.ops.global_avg_pool import GlobalAvgPool
from intonnx.ir.types import Dim, DType, QuantParams, TensorType, static_shape

_LEAST_MULTIPLIER, _MULTIPLIERS_END = 2.0**-32, 256.0
_COUNTS_END = 1 << 24
_CONVERTIBLE = 2.0**30
"""Quotients below this convert to int32; larger ones wrap around in the kernel."""


def global_multiplier(x: QuantParams, out: QuantParams, count: int) -> np.float32:
    """x.scale / (out.scale * count) in float32; zero or infinity where it leaves the range."""
    with np.errstate(over="ignore", under="ignore"):
        return np.float32(x.scalar_scale / np.float32(out.scalar_scale * np.float32(count)))


def has_global_kernel(op: GlobalAvgPool, x: TensorType) -> bool:
    """Whether QLinearGlobalAveragePool takes these types and every size that `x` may have.

    An unknown count of cells can be anything from 1 to 2^24.
    """
    if x.shape is None or not _same_storage(x.params, op.out):
        return False
    sizes = static_shape(spatial_sizes(op, x.shape))
    counts = (1, _COUNTS_END - 1) if sizes is None else (math.prod(sizes),)
    return all(_in_range(x.params, op.out, count) for count in counts)


def has_windowed_kernel(op: AvgPool, x: TensorType) -> bool:
    """Whether QLinearAveragePool takes these types and attributes, and means the same.

    It has no dilations, and with `count_include_pad` it also counts cells beyond the padding.
    Where the kernel may be the whole image it has the limits of the global pool.
    """
    if x.shape is None or not _same_storage(x.params, op.out) or max(op.dilations) > 1:
        return False
    if 255 * float(x.params.scalar_scale) / float(op.out.scalar_scale) >= _CONVERTIBLE:
        return False
    sizes = spatial_sizes(op, x.shape)
    known = static_shape(sizes)
    overhang = op.ceil_mode if known is None else any(op.overhang(known))
    if op.count_include_pad and overhang:
        return False
    may_be_image = all(
        isinstance(size, str) or size == k for size, k in zip(sizes, op.kernel, strict=True)
    )
    return not may_be_image or _in_range(x.params, op.out, math.prod(op.kernel))


def spatial_sizes(op: AvgPool | GlobalAvgPool, shape: Sequence[Dim]) -> tuple[Dim, ...]:
    """The sizes of the axes that are pooled."""
    return tuple(shape[1:-1] if op.channels_last else shape[2:])


def _same_storage(x: QuantParams, out: QuantParams) -> bool:
    eight_bit = x.storage is out.storage and x.storage in (DType.U8, DType.I8)
    return eight_bit and x.expressed is out.expressed is DType.F32


def _in_range(x: QuantParams, out: QuantParams, count: int) -> bool:
    k = global_multiplier(x, out, count)
    in_reach = _LEAST_MULTIPLIER <= float(k) < _MULTIPLIERS_END
    return 0 < count < _COUNTS_END and in_reach
