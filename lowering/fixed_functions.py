"""Exponentials, logarithms and powers in whole numbers: by tables and short polynomials.

Tables are made with Python's `decimal`, whose results are rounded correctly, so that they are the
same on every machine. What is computed at run time is int64 alone.
"""

from __future__ import annotations

import decimal
from fractions import Fraction
from functools import cache, lru_cache

import numpy as np

from intonnx.ir.types import Array

LOG_BITS = 40
"""Binary digits after the point of a logarithm to the base 2."""
_CONTEXT = decimal.Context(prec=60)
_INDEX_BITS = 8
_EXACT_BITS = 120


def exponentials(step: Fraction, count: int, bits: int) -> Array:
    """exp(-n * step) * 2^bits to the nearest whole number for n = 0 .. count - 1: int64 [count]."""
    # Products of two factors, one for each half of the digits of n.
    low = [_exp(-step * n) for n in range(min(count, 256))]
    high = [_exp(-step * n * 256) for n in range(-(-count // 256))]
    shift = 2 * _EXACT_BITS - bits
    half = 1 << (shift - 1)
    found = [(a * b + half) >> shift for a in high for b in low][:count]
    return np.array(found, np.int64)


def _exp(x: Fraction) -> int:
    """exp(x) * 2^120 for x of at most 0."""
    if x < -200:
        return 0
    power = _CONTEXT.exp(_decimal(x))
    return int((power * (1 << _EXACT_BITS)).to_integral_value(context=_CONTEXT))


def _decimal(x: Fraction) -> decimal.Decimal:
    return _CONTEXT.divide(decimal.Decimal(x.numerator), decimal.Decimal(x.denominator))


def _scaled(x: decimal.Decimal, bits: int) -> int:
    """The whole number nearest to x * 2^bits."""
    return int(_CONTEXT.multiply(x, decimal.Decimal(1 << bits)).to_integral_value())


def log2_of(x: Fraction, bits: int = LOG_BITS) -> int:
    """The logarithm of a positive number times 2^bits, to the nearest whole number."""
    found = _CONTEXT.subtract(
        _CONTEXT.ln(decimal.Decimal(x.numerator)), _CONTEXT.ln(decimal.Decimal(x.denominator))
    )
    return _scaled(_CONTEXT.divide(found, _ln2()), bits)


@cache
def _ln2() -> decimal.Decimal:
    return _CONTEXT.ln(decimal.Decimal(2))


@lru_cache(maxsize=1)
def _logarithm_tables() -> tuple[Array, Array]:
    """For the upper digits of a number from 1 to 2: 2^21 over it, and the logarithm of that."""
    count = 1 << _INDEX_BITS
    inverses = [round(Fraction(count << 22, 2 * count + 2 * i + 1)) for i in range(count)]
    logarithms = [-log2_of(Fraction(inverse, 1 << 21)) for inverse in inverses]
    return np.array(inverses, np.int64), np.array(logarithms, np.int64)


@lru_cache(maxsize=1)
def _power_table() -> Array:
    """2^(i / 256) * 2^30 for the upper digits of an exponent's fraction."""
    count = 1 << _INDEX_BITS
    powers = [_CONTEXT.exp(_CONTEXT.multiply(_decimal(Fraction(i, count)), _ln2()))
              for i in range(count)]  # fmt: skip
    return np.array([_scaled(power, 30) for power in powers], np.int64)


LN_2 = Fraction("0.69314718055994530941723212145817656807550013436026")
_LOG2_E_26 = round((1 << 26) / LN_2)
_LN_2_30 = round((1 << 30) * LN_2)


def bit_lengths(values: Array) -> Array:
    """The number of binary digits of whole numbers from 1 to 2^62 - 1, int64."""
    lengths = np.ones_like(values)
    rest = values
    for step in (32, 16, 8, 4, 2, 1):
        above = rest >> step > 0
        lengths += above * step
        rest = np.where(above, rest >> step, rest)
    return lengths


def log2(values: Array) -> Array:
    """Logarithms of int64 from 1 to 2^62 - 1, times 2^40; right to 2^-34.

    The number is 2^e * f with f from 1 to 2, and r = f * inverse - 1 is small for the inverse of
    f's upper digits: log2 = e - log2(inverse) + (r - r^2 / 2 + r^3 / 3 - r^4 / 4) / ln 2.
    """
    inverses, logarithms = _logarithm_tables()
    e = bit_lengths(values) - 1
    # f with 40 digits after the point.
    f = np.where(e >= 40, values >> np.maximum(e - 40, 0), values << np.maximum(40 - e, 0))
    index = (f >> (40 - _INDEX_BITS)) & ((1 << _INDEX_BITS) - 1)
    r = f * inverses[index] - (1 << 61)
    r38 = r >> 23
    square = r38 * r38 >> 36
    cube = square * r38 >> 38
    fourth = square * square >> 40
    series = (r >> 17) - (square << 3) + (cube << 4) // 3 - (fourth << 2)
    found: Array = (e << LOG_BITS) + logarithms[index] + (series * _LOG2_E_26 >> 30)
    return found


def exp2(exponents: Array) -> tuple[Array, Array]:
    """2 to the power of int64 / 2^40, as m * 2^(shift - 31) with m from 2^30 to 2^31.

    It is right to 2^-29 of itself. 2^(i / 256) comes from a table, the rest is
    1 + u + u^2 / 2 + u^3 / 6.
    """
    whole = exponents >> LOG_BITS
    fraction = exponents & ((1 << LOG_BITS) - 1)
    base = _power_table()[fraction >> (LOG_BITS - _INDEX_BITS)]
    u = (fraction & ((1 << (LOG_BITS - _INDEX_BITS)) - 1)) * _LN_2_30 >> 30
    square = u * u >> 40
    rest = u + (square >> 1) + (square * u >> 40) // 6
    return base + (base * rest >> 40), whole + 1
