"""What both lowerings of sums agree on: the multiplier of a mean, and how wide a sum may be."""

from __future__ import annotations

import math

import numpy as np

from intonnx.ir.types import QuantParams, TensorType, static_shape

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


def largest_code(params: QuantParams) -> int:
    """The largest |code - zero point|."""
    zeros = params.zero_point
    return max(params.qmax - int(zeros.min()), int(zeros.max()) - params.qmin)


def fits_int32(x: TensorType, sizes: tuple[int | str, ...]) -> bool:
    """Whether sums of (code - zero point) over axes of these sizes never leave int32."""
    known = static_shape(sizes)
    return known is not None and math.prod(known) * largest_code(x.params) < INT32_LIMIT
