"""The numerics `fixed` in Python's whole numbers and fractions: plain, slow, obviously right."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from support.models import Array, Params

Pair = tuple[int, int]


def decompose(factor: Fraction) -> Pair:
    """m and shift with factor = m * 2^(shift - 31), nearest, m from 2^30 to 2^31 - 1."""
    shift = 0
    while abs(factor) >= Fraction(2) ** shift:
        shift += 1
    while factor and abs(factor) < Fraction(2) ** (shift - 1):
        shift -= 1
    m = round(factor * Fraction(2) ** (31 - shift))
    return (m // 2, shift + 1) if abs(m) == 2**31 else (m, shift)


def value(pair: Pair) -> Fraction:
    """The factor that m and shift stand for."""
    return pair[0] * Fraction(2) ** (pair[1] - 31)


def half_up(x: Fraction) -> int:
    """The nearest whole number, halves upwards."""
    return math.floor(x + Fraction(1, 2))


def code(quanta: int, out: Params) -> int:
    """The code of a whole number of quanta."""
    info = np.iinfo(out.dtype)
    return min(max(quanta + int(out.zero_array), int(info.min)), int(info.max))


def scale(params: Params) -> Fraction:
    """The scale of per-tensor parameters, exactly."""
    return Fraction(float(params.scale_array))


def centred(codes: Array, params: Params) -> list[int]:
    """Codes less their zero point, flat."""
    return [int(c) - int(params.zero_array) for c in np.ravel(codes)]


def requantize(x: int, factor: Fraction, out: Params) -> int:
    """The code of x * factor quanta."""
    return code(half_up(x * value(decompose(factor))), out)
