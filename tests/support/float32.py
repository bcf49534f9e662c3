"""Exact IEEE binary32 steps: the fused multiply-add numpy lacks, and rounding to codes."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
F32 = np.float32


def f32(value: Any) -> Array:
    """The float32 nearest to every element (any shape, any number type -> f32, same shape)."""
    return np.asarray(value, dtype=np.float32)


def fma_fraction(a: float, b: float, c: float) -> np.float32:
    """One fused multiply-add by exact rationals: finite f32 scalars -> f32, rounded once."""
    exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
    near = np.float32(float(exact))  # rounded twice: off by one float at most
    around = [np.nextafter(near, F32(-np.inf)), near, np.nextafter(near, F32(np.inf))]
    finite = [v for v in around if np.isfinite(v)]

    def rank(v: np.float32) -> tuple[Fraction, int]:
        return abs(Fraction(float(v)) - exact), int(v.view(np.int32)) & 1

    return min(finite, key=rank)


def fma(a: Any, b: Any, c: Any) -> Array:
    """a * b + c with one rounding: f32 arrays that broadcast -> f32.

    The product is exact in float64; the sum is rounded to odd there, so that the last rounding to
    float32 is the only one that counts (53 >= 24 + 2 bits).
    """
    x, y, z = np.broadcast_arrays(f32(a), f32(b), f32(c))
    product = x.astype(np.float64) * y.astype(np.float64)
    addend = z.astype(np.float64)
    total = np.asarray(product + addend)
    back = total - product
    error = (product - (total - back)) + (addend - back)
    even = (total.view(np.int64) & 1) == 0
    towards = np.where(error > 0, np.inf, -np.inf)
    odd = np.where((error != 0) & even, np.nextafter(total, towards), total)
    return f32(odd)


def chain(x: Any, coefficients: list[float]) -> Array:
    """Horner's rule with fused steps, highest power first: f32 array -> f32, same shape."""
    value = np.full_like(f32(x), F32(coefficients[0]))
    for coefficient in coefficients[1:]:
        value = fma(value, x, F32(coefficient))
    return value


def limits(dtype: npt.DTypeLike) -> tuple[int, int]:
    """Smallest and largest code of an integer type."""
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)


def to_int32(value: Any) -> Array:
    """x86 conversion, half to even: f32 -> int32 values as int64; what does not fit is -2^31."""
    v = np.asarray(value, dtype=np.float64)
    fits = np.isfinite(v) & (v >= -(2.0**31)) & (v < 2.0**31)
    return np.where(fits, np.rint(np.where(fits, v, 0.0)), -(2.0**31)).astype(np.int64)


def saturate(codes: Any, dtype: npt.DTypeLike) -> Array:
    """Clamp integers (any shape) to the range of `dtype` and store them so."""
    low, high = limits(dtype)
    return np.asarray(np.clip(np.asarray(codes), low, high)).astype(dtype)
