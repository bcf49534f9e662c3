"""Normalizations in integers alone, for the numerics `fixed`.

With n values q = code - zero point in a row and T their sum, (x - mean) / sqrt(variance + epsilon)
is (n * q - T) / sqrt(n * sum(q^2) - T^2 + epsilon * n^2 / scale^2): whole numbers up to the root.
The few statistics of rows are whole numbers of any size.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from intonnx.ir.errors import CompileFailure
from intonnx.ir.types import Array, QuantParams
from intonnx.lowering import fixed_point
from intonnx.lowering.fixed_point import BITS, Scaling
from intonnx.lowering.requantize import farthest, limited

from ._normalization import centred, squares

_GUARD_BITS = 16
"""Digits after the point of quanta before the bias is added and the sum rounded."""
_NORMAL_BITS = 24
"""Digits after the point of normalized values, whose magnitude is at most sqrt(n)."""
_ROOT_BITS = 32
_NARROW_ROW = 1 << 14
"""Normalized values of shorter rows take less than 32 bits."""


class Affine(NamedTuple):
    """Constant factors and addends of normalized values; None for an addend of 0."""

    scale: Array
    bias: Array | None


def constants(*given: Array | None) -> list[Array]:
    """Constant real operands. Raises CompileFailure for one that is not constant or not finite."""
    found = []
    for array in given:
        if array is None:
            raise CompileFailure("no fixed form: an operand has real values until run time")
        if not np.isfinite(array).all():
            raise CompileFailure("no fixed form: a constant operand is not finite")
        found.append(array)
    return found


class FixedNormalization:
    """Codes of rows to codes of their normalized values.

    Args:
        x, out: the parameters of the operand and the result.
        epsilon: what is added to the variance.
        affine: arrays that broadcast over the normalized values.
        mean: whether the mean is taken off.
    """

    def __init__(
        self, x: QuantParams, out: QuantParams, epsilon: float, affine: Affine, *, mean: bool
    ) -> None:
        self._x, self._out, self._mean = x, out, mean
        ratio = Fraction(epsilon) / Fraction(float(x.scalar_scale)) ** 2
        self._epsilon = round(ratio * (1 << 2 * _ROOT_BITS))
        quanta = fixed_point.fractions(affine.scale) / Fraction(float(out.scalar_scale))
        limit = farthest(out) + 1 << _GUARD_BITS
        self._bias: Array | None = None
        if affine.bias is not None:
            self._bias = quanta_of(affine.bias, out, 40)
            limit += int(np.abs(self._bias).max(initial=0))
        down = Fraction(1, 1 << (_NORMAL_BITS - _GUARD_BITS))
        factor = fixed_point.multiplier(np.asarray(quanta * down, object))
        self._scaling = Scaling(factor, limit)

    def __call__(
        self, codes: Array, axes: tuple[int, ...], shape: tuple[int, ...] | None = None
    ) -> Array:
        """Codes of the rows along `axes`; the affine part broadcasts over `shape`, if given."""
        z, undefined = self._normalized(codes, axes)
        v = self._scaling(z if shape is None else z.reshape(shape))
        if self._bias is not None:
            v = np.asarray(v + self._bias)
        result = limited(fixed_point.rounded_shift(v, _GUARD_BITS), self._out)
        if undefined.any():
            rows = np.broadcast_to(undefined, codes.shape).reshape(result.shape)
            result = np.where(rows, self._out.storage.numpy.type(self._out.qmin), result)
        return result

    def _normalized(self, codes: Array, axes: tuple[int, ...]) -> tuple[Array, Array]:
        """Normalized values times 2^24, and which rows have none: those that divide 0 by 0."""
        values = centred(codes, self._x)
        count = math.prod(values.shape[axis] for axis in axes)
        rest = np.zeros((1,) * values.ndim, np.int64)
        if self._mean:
            # Around the whole number next to the mean, all numbers are small.
            total = values.sum(axis=axes, dtype=np.int64, keepdims=True)
            near = (2 * total + count) // max(2 * count, 1)
            values -= near.astype(np.int32)
            rest = total - count * near
        second = squares(values, self._x).sum(axis=axes, dtype=np.int64, keepdims=True)
        variance = second.astype(object) * count - rest.astype(object) ** 2
        power = variance * (1 << 2 * _ROOT_BITS) + self._epsilon * count**2
        m, shift = inverse_roots(np.asarray(power, object))
        centred_values = values.astype(np.int64) * count - rest
        product = fixed_point.limbs(centred_values, m)
        z = fixed_point.rounded_limbs(*product, shift + (_ROOT_BITS + _NORMAL_BITS))
        narrow = np.int32 if count < _NARROW_ROW else np.int64
        return z.astype(narrow), np.asarray(power == 0)


def inverse_roots(values: Array) -> tuple[Array, Array]:
    """1 / sqrt(x) as m * 2^(shift - 31) of whole numbers of any size; m is 0 for 0."""
    inverse: Callable[[Array], tuple[Array, Array]] = np.frompyfunc(_inverse_root, 1, 2)
    m, shift = inverse(values)
    return np.asarray(m, np.int64), np.asarray(shift, np.int64)


def _inverse_root(x: int) -> tuple[int, int]:
    if x == 0:
        return 0, 0
    # An even number of digits more, for a root of more than 32 bits.
    more = max(0, 66 - x.bit_length()) // 2
    root = math.isqrt(x << 2 * more)
    length = root.bit_length()
    m = ((1 << (length + BITS)) // root + 1) // 2
    # 1 / root = m * 2^-(length + 30), and the digits that were added are taken off.
    shift = more - length + 1
    return (m // 2, shift + 1) if m == 1 << BITS else (m, shift)


def quanta_of(values: Array, out: QuantParams, bits: int) -> Array:
    """Constants as whole multiples of the result's scale / 2^16, limited to `bits` bits: int64."""
    quantum = Fraction(float(out.scalar_scale)) / (1 << _GUARD_BITS)
    limit = 1 << bits
    flat = [round(Fraction(value) / quantum) for value in np.ravel(values).tolist()]
    found = [min(max(value, -limit), limit) for value in flat]
    return np.array(found, np.int64).reshape(np.shape(values))
