"""Matrix products of whole numbers through floating point BLAS, only where that is exact.

A sum of products of whole numbers is exact in floating point, in any order, as long as every
partial sum is exactly representable: sum |x| |w| below 2^24 in float32, below 2^53 in float64. The
bound is taken per column from the actual weights and the largest |x|. Where float32 does not
reach, the reduction is split into parts that it does reach, whose sums are added as integers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from intonnx.ir.types import Array

FLOAT32_EXACT = 1 << 24
FLOAT64_EXACT = 1 << 53
INT32_LIMIT = 1 << 31
_MAX_PARTS = 4
"""With more parts than this, float64 is faster than float32."""

_F32: np.dtype[Any] = np.dtype(np.float32)

Product = Callable[[Array], Array]


def accumulator_bound(w: Array, x_max: int) -> int:
    """The largest |sum| of a column of `w` [..., K, O] times values of at most `x_max`."""
    if w.size == 0:
        return 0
    return int(np.abs(w.astype(np.int64)).sum(axis=-2).max()) * x_max


def accumulator_dtype(bound: int) -> np.dtype[Any]:
    """int32 where it holds every sum up to the bound, else int64."""
    return np.dtype(np.int32 if bound < INT32_LIMIT else np.int64)


def exact_dtype(bound: int) -> np.dtype[Any]:
    """The narrowest type that adds and multiplies exactly where no sum exceeds the bound."""
    if bound < FLOAT32_EXACT:
        return np.dtype(np.float32)
    return np.dtype(np.float64 if bound < FLOAT64_EXACT else np.int64)


def exact_product(w: Array, x_max: int, extra: int = 0) -> tuple[Product, np.dtype[Any]]:
    """A function x [..., M, K] -> x @ w, and the float type in which it wants `x`.

    Args:
        w: whole numbers [..., K, O], zero points subtracted.
        x_max: the largest |x|.
        extra: the largest |bias| that will be added, to choose the integer type of the result.

    The result is int32 where every sum (and the bias) fits, else int64.
    """
    bound = accumulator_bound(w, x_max)
    dtype = accumulator_dtype(bound + extra)
    parts = _parts(w, x_max)
    if parts is not None:
        packed = [np.ascontiguousarray(w[..., part, :], np.float32) for part in parts]
        return lambda x: _sum_of_parts(x, packed, parts, dtype), _F32
    if bound < FLOAT64_EXACT:
        whole = np.ascontiguousarray(w, np.float64)
        return lambda x: np.asarray(np.matmul(x, whole), dtype), np.dtype(np.float64)
    integers = np.ascontiguousarray(w, np.int64)
    return lambda x: np.asarray(np.matmul(x, integers)), np.dtype(np.int64)


def _sum_of_parts(x: Array, packed: list[Array], parts: list[slice], dtype: np.dtype[Any]) -> Array:
    if len(parts) == 1:
        return np.asarray(np.matmul(x, packed[0]), dtype)
    total = np.asarray(np.matmul(x[..., parts[0]], packed[0]), dtype)
    for part, w in zip(parts[1:], packed[1:], strict=True):
        total += np.matmul(x[..., part], w).astype(dtype)
    return total


def _parts(w: Array, x_max: int) -> list[slice] | None:
    """Ranges of the reduction whose sums stay exact in float32; None when there are too many."""
    k = w.shape[-2]
    magnitudes = np.abs(w.astype(np.int64))
    if max(x_max, int(magnitudes.max(initial=0))) >= FLOAT32_EXACT:
        return None
    reach = (FLOAT32_EXACT - 1) // max(1, x_max)
    sums = magnitudes.cumsum(axis=-2)
    parts: list[slice] = []
    start = 0
    while start < k or not parts:
        before = sums[..., start - 1 : start, :] if start else 0
        # The sums grow along the reduction, so the count of exact rows is the end of the part.
        exact = (sums - before <= reach).reshape(-1, k, w.shape[-1]) if w.size else None
        end = k if exact is None else int(exact.all(axis=(0, 2)).sum())
        if end <= start < k or len(parts) == _MAX_PARTS:
            return None
        parts.append(slice(start, end))
        start = end
    return parts


def product_of_unknown(
    k: int, x_max: int, w_max: int, extra: int = 0
) -> tuple[Callable[[Array, Array], Array], np.dtype[Any]]:
    """As `exact_product` for a `w` that is known at run time only: bounded by its largest |w|.

    The function takes x [..., M, K] and w [..., K, O], both in the float type that is returned.
    """
    bound = k * x_max * w_max
    dtype = accumulator_dtype(bound + extra)
    step = (FLOAT32_EXACT - 1) // max(1, x_max * w_max)
    if k <= step * _MAX_PARTS:
        starts = range(0, max(k, 1), max(step, 1))
        parts = [slice(start, start + step) for start in starts]
        return lambda x, w: _sum_of_parts(x, [w[..., p, :] for p in parts], parts, dtype), _F32
    wide = np.dtype(np.float64 if bound < FLOAT64_EXACT else np.int64)
    return lambda x, w: np.asarray(np.matmul(x, w), dtype), wide


def largest_magnitude(low: int, high: int, zero_point: int) -> int:
    """The largest |code - zero_point| of codes from `low` to `high`."""
    return max(abs(low - zero_point), abs(high - zero_point))
