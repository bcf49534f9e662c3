"""What the kernels of normalizations share: statistics of exact integer sums."""

from __future__ import annotations

import math

import numpy as np

from intonnx.ir.types import Array, QuantParams
from intonnx.lowering.requantize import round_to_codes


def centred(codes: Array, params: QuantParams) -> Array:
    """The whole numbers code - zero point as int32, in the layout of `codes`."""
    values: Array = codes.astype(np.int32)
    values -= np.int32(params.scalar_zero_point)
    return values


def squares(values: Array, params: QuantParams) -> Array:
    """The squares of differences of codes, in a type that holds them."""
    wide = np.int32 if params.storage.bits <= 8 else np.int64
    return np.square(values, dtype=wide)


def normalized(
    values: Array, params: QuantParams, axes: tuple[int, ...], epsilon: float, *, mean: bool
) -> Array:
    """float64 (x - mean) / sqrt(variance + epsilon), or without the mean x / sqrt(mean(x * x)).

    `values` are whole numbers from `centred` that the caller gives up, `params` say what real
    values they stand for.
    """
    count = math.prod(values.shape[axis] for axis in axes)
    scale = float(params.scalar_scale)
    rest: Array = np.zeros((), np.float64)
    with np.errstate(all="ignore"):
        if mean:
            # Around the whole number next to the mean, a small variance is no small difference.
            total = values.sum(axis=axes, dtype=np.int64, keepdims=True)
            near = (2 * total + count) // max(2 * count, 1)
            values -= near.astype(np.int32)
            rest = (total - count * near) / count
        second = squares(values, params).sum(axis=axes, dtype=np.int64, keepdims=True)
        variance = second / count - rest**2
        x: Array = values.astype(np.float64)
        x -= rest
        x *= scale / np.sqrt(variance * scale**2 + epsilon)
    return x


def quantized(x: Array, out: QuantParams) -> Array:
    """Codes of float64 values, which are overwritten: one rounding."""
    with np.errstate(all="ignore"):
        x /= float(out.scalar_scale)
    return round_to_codes(x, out)
