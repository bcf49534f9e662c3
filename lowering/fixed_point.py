"""Multipliers and rounding shifts: real factors applied to whole numbers, in integers alone.

A positive real factor becomes m * 2^(shift - 31) with m from 2^30 to 2^31 - 1, the nearest one. A
product is rounded once, half up: floor(x * m / 2^(31 - shift) + 1/2). Everything is exact Python or
int64 arithmetic, so that results are the same on every machine.

Source: numerics page of the documentation, `fixed`; the single-rounding variant of gemmlowp's
saturating doubling high multiplication and rounding right shift.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from intonnx.ir.types import Array

BITS = 31
LIMB = 1 << 31
"""Whole numbers below this have a product with a multiplier that int64 holds."""
_LARGEST_SHIFT = 59
"""Factors from 2^58 on move every whole number but 0 beyond all results."""
_LIMB_MASK = LIMB - 1


@dataclass(frozen=True)
class Multiplier:
    """Real factors as m * 2^(shift - 31).

    Attributes:
        m: int64 of any shape; |m| is 0 or from 2^30 to 2^31 - 1, or smaller where several factors
            have one shift.
        shift: int64 in the shape of `m`, or rank 0.
        error: the largest relative error of one of the factors.
    """

    m: Array
    shift: Array
    error: float


_found: ContextVar[list[Multiplier] | None] = ContextVar("_found", default=None)


@contextmanager
def recorded() -> Generator[list[Multiplier], None, None]:
    """Collect every multiplier that is made inside the `with` statement."""
    made: list[Multiplier] = []
    token = _found.set(made)
    try:
        yield made
    finally:
        _found.reset(token)


def fractions(values: Array) -> Array:
    """Finite floats as exact `Fraction`s, in an object array of the same shape."""
    flat = [Fraction(value) for value in np.ravel(values).tolist()]
    return object_array(flat).reshape(np.shape(values))


def object_array(values: Sequence[Fraction]) -> Array:
    """An object array [n]."""
    array = np.empty(len(values), object)
    array[:] = values
    return array


def exponent(factor: Fraction) -> int:
    """The shift of a factor: the least with |factor| < 2^shift; 0 for 0."""
    if factor == 0:
        return 0
    n, d = abs(factor.numerator), factor.denominator
    shift = n.bit_length() - d.bit_length()
    return shift + (n >= d << shift if shift >= 0 else n << -shift >= d)


def _decomposed(factor: Fraction) -> tuple[int, int]:
    shift = exponent(factor)
    m = _nearest(factor, BITS - shift)
    # The nearest of a factor just below a power of two is that power.
    return (m // 2, shift + 1) if abs(m) == LIMB else (m, shift)


def _nearest(factor: Fraction, bits: int) -> int:
    """The whole number nearest to factor * 2^bits."""
    return round(factor * (1 << bits) if bits >= 0 else factor / (1 << -bits))


def _relative_error(factor: Fraction, m: int, shift: int) -> float:
    if factor == 0:
        return 0.0
    power = BITS - shift
    made = Fraction(m, 1 << power) if power >= 0 else Fraction(m << -power)
    return float(abs(made / factor - 1))


def multiplier(factors: Array) -> Multiplier:
    """The multiplier of each factor of an object array of `Fraction`s, nearest and normalized."""
    return _noted(_multiplier(factors))


def _multiplier(factors: Array) -> Multiplier:
    shape, flat = np.shape(factors), np.ravel(factors).tolist()
    known = {factor: _decomposed(factor) for factor in set(flat)}
    error = max((_relative_error(f, *pair) for f, pair in known.items()), default=0.0)
    pairs = np.array([known[factor] for factor in flat], np.int64).reshape(*shape, 2)
    return Multiplier(pairs[..., 0], pairs[..., 1], error)


def common_multipliers(terms: Sequence[Array], least_shift: int = -1000) -> list[Multiplier]:
    """One multiplier for each object array of `Fraction`s, all with one shift.

    It is that of the largest factor, at least `least_shift`: smaller factors have fewer digits.
    """
    distinct = {factor for factors in terms for factor in np.ravel(factors).tolist()}
    # The nearest of the largest factor must stay below 2^31.
    shifts = [shift for m, shift in map(_decomposed, distinct) if m]
    shift = max([*shifts, least_shift])
    made = []
    for factors in terms:
        m = scaled_to(factors, shift)
        pairs = zip(np.ravel(factors).tolist(), m.flat, strict=True)
        error = max((_relative_error(factor, int(m), shift) for factor, m in pairs), default=0.0)
        made.append(_noted(Multiplier(m, np.asarray(shift, np.int64), error)))
    return made


def scaled_to(factors: Array, shift: int) -> Array:
    """The whole numbers nearest to factor * 2^(31 - shift), int64, of an array of `Fraction`s."""
    found = [_nearest(factor, BITS - shift) for factor in np.ravel(factors).tolist()]
    return np.array(found, np.int64).reshape(np.shape(factors))


def _noted(made: Multiplier) -> Multiplier:
    notes = _found.get()
    if notes is not None:
        notes.append(made)
    return made


def ratio(numerator: Array, denominator: Array) -> Multiplier:
    """The multiplier of numerator / denominator for positive float32 arrays that broadcast."""
    one, other = np.broadcast_arrays(
        np.asarray(numerator, np.float32), np.asarray(denominator, np.float32)
    )
    # Tensors have many elements, but few pairs of scales.
    keys = (one.view(np.int32).astype(np.int64) << 32) | other.view(np.int32)
    distinct, places = np.unique(keys, return_inverse=True)
    scales = np.stack([distinct >> 32, distinct & 0xFFFFFFFF]).astype(np.int32).view(np.float32)
    made = _multiplier(fractions(scales[0]) / fractions(scales[1]))
    places = places.reshape(keys.shape)
    return _noted(Multiplier(made.m[places], made.shift[places], made.error))


class Scaling:
    """Whole numbers times a multiplier, rounded once and limited.

    Args:
        factor: broadcasts over the whole numbers.
        limit: results are right up to this magnitude, at most 2^56, and stay beyond it otherwise.
    """

    def __init__(self, factor: Multiplier, limit: int) -> None:
        self._m = factor.m
        self._shift = np.minimum(factor.shift, _LARGEST_SHIFT)
        self._total = BITS - self._shift
        # Larger whole numbers give results beyond the limit, as this one does.
        bounds = [_reach(m, s, limit) for m, s in np.broadcast(factor.m, factor.shift)]
        self._bound = np.array(bounds, np.int64).reshape(factor.m.shape)
        self._fits = bool(np.all((self._total >= 1) & (self._total <= 62)))
        self._narrow = self._fits and max(bounds, default=0) <= LIMB
        self._half = np.left_shift(1, np.clip(self._total, 1, 63) - 1)

    def __call__(self, values: Array) -> Array:
        """int64 results for whole numbers up to 2^62 of any integer type, in their layout."""
        simple = self._fits and values.dtype.itemsize <= 4
        v: Array = np.array(values, np.int64)
        if not simple:
            np.clip(v, -self._bound, self._bound, out=v)
            if not self._narrow:
                return rounded_limbs(*limbs(v, self._m), self._shift)
        v *= self._m
        v += self._half
        v >>= self._total
        return v


class Quotient:
    """Whole numbers times a multiplier, divided by whole numbers, rounded once and limited.

    Args:
        factor: broadcasts over the whole numbers.
        limit: as for `Scaling`, at most 2^33.
        largest: the largest |divisor|; more than 2^31 only for a factor below 2^31.

    A numerator beyond 32 bits counts as the largest one of 32 bits.
    """

    def __init__(self, factor: Multiplier, limit: int, largest: int) -> None:
        self._m = factor.m
        self._beyond = limit + 1
        self._total = BITS - np.minimum(factor.shift, BITS + 32)
        reach = limit * largest
        bounds = [_reach(m, s, reach) for m, s in np.broadcast(factor.m, factor.shift)]
        self._bound = np.minimum(np.array(bounds, np.int64).reshape(factor.m.shape), LIMB - 1)

    def __call__(self, x: Array, y: Array) -> Array:
        """int64 quotients; by 0 they are beyond the limit, and 0 / 0 is below all."""
        numerator = np.clip(x, -self._bound, self._bound) * self._m
        numerator = np.left_shift(numerator, np.maximum(-self._total, 0))
        sign = np.where(y < 0, -1, 1)
        # A floor of a quotient and then of its rounded shift is one floor of both.
        floors = np.floor_divide(numerator * sign, np.where(y == 0, 1, np.abs(y)))
        found = rounded_shift(floors, np.maximum(self._total, 0))
        beyond = np.where(numerator > 0, self._beyond, -self._beyond)
        return np.where(y == 0, beyond, found)


def _reach(m: int, shift: int, limit: int) -> int:
    """The least whole number whose product has a magnitude above the limit, at most 2^62."""
    if m == 0:
        return 0
    total = BITS - int(shift)
    numerator = limit + 1 << total if total >= 0 else limit + 1
    divisor = abs(int(m)) << max(0, -total)
    return min(-(-numerator // divisor), 1 << 62)


def limbs(values: Array, m: Array) -> tuple[Array, Array]:
    """The product values * m as high * 2^31 + low, int64, for values up to 2^62, |m| below 2^31."""
    return np.asarray((values >> BITS) * m), np.asarray((values & _LIMB_MASK) * m)


def rounded_limbs(high: Array, low: Array, shift: Array) -> Array:
    """floor((high * 2^31 + low) * 2^(shift - 31) + 1/2).

    It is exact up to 2^60; beyond it the result is beyond it, too. |high| is at most 2^62 and |low|
    below 2^63 - 2^32: sums of two pairs of `limbs` may have that.
    """
    down = np.minimum(-shift, 62)
    right = np.maximum(down, 1)
    # With a whole half of the last place, floors may be taken one after the other.
    small = high + (low >> BITS) + np.left_shift(1, right - 1) >> right
    if np.all(down >= 1):
        return np.asarray(small)
    left = np.clip(-down, 0, 59)
    limit = np.left_shift(1, 60 - left)
    # With the low part below 2^31, neither the product of the high one nor the sum leaves int64.
    high, low = high + (low >> BITS), low & _LIMB_MASK
    above = np.left_shift(low, np.maximum(left - BITS, 0))
    below = rounded_shift(low, np.maximum(BITS - left, 1))
    total = np.left_shift(high, left) + np.where(left >= BITS, above, below)
    large = np.where(np.abs(high) > limit, np.sign(high) << 61, total)
    return np.where(down >= 1, small, large)


def rounded_shift(values: Array, total: Array | int) -> Array:
    """floor(values / 2^total + 1/2) for int64 below 2^62; a negative `total` multiplies.

    What it multiplies is limited so that results stay below 2^60.
    """
    right = np.clip(total, 1, 63)
    shifted: Array = values + np.left_shift(1, right - 1) >> right
    if np.all(np.asarray(total) >= 1):
        return shifted
    left = np.clip(-np.asarray(total), 0, 59)
    bound = np.left_shift(1, 59 - left)
    return np.where(np.asarray(total) >= 1, shifted, np.clip(values, -bound, bound) << left)
