"""What both lowerings of sums agree on: the multiplier of a mean, and how wide a sum may be."""

from __future__ import annotations

import math

import numpy as np

from intonnx.ir.types import Array, QuantParams, TensorType, static_shape

INT32_LIMIT = 1 << 31


def mean_multiplier(x: QuantParams, out: QuantParams, count: int) -> np.float32 | None:
    """x.scale / (out.scale * count), rounded once to float32.

    None where the literal arithmetic has to be followed: without elements, or out of range.
    """
    if count == 0:
        return None
    with np.errstate(over="ignore", under="ignore"):
        k = np.float32(float(x.scalar_scale) / (float(out.scalar_scale) * count))
    return k if np.isfinite(k) and k > 0 else None


def mean_scale(k: np.float32, out: QuantParams) -> Array:
    """A float32 scale of sums that divided by that of the result is the multiplier `k`.

    Where there is none, as the result may be subnormal, the nearest.
    """
    scale = np.float32(out.scalar_scale)
    with np.errstate(all="ignore"):
        near = np.float32(np.float64(k) * np.float64(scale))
        below, above = (np.nextafter(near, np.float32(end)) for end in (0, np.inf))
        fitting = [value for value in (near, below, above) if value / scale == k]
    return np.asarray(fitting[0] if fitting else near, np.float32)


def largest_code(params: QuantParams) -> int:
    """The largest |code - zero point|."""
    zeros = params.zero_point
    return max(params.qmax - int(zeros.min()), int(zeros.max()) - params.qmin)


def fits_int32(x: TensorType, sizes: tuple[int | str, ...]) -> bool:
    """Whether sums of (code - zero point) over axes of these sizes never leave int32."""
    known = static_shape(sizes)
    return known is not None and math.prod(known) * largest_code(x.params) < INT32_LIMIT
