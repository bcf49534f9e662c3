"""Steps of float32 arithmetic that numpy does not have, alike on every machine.

numpy's own exp, log and tanh depend on the CPU's vector unit; tables and kernels must not.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .types import Array

_MAGIC = np.float32(12582912.0)
"""1.5 * 2^23: adding it to a small float32 rounds that to a whole number, half to even."""
_SMALLEST_NORMAL = float(np.finfo(np.float32).tiny)
_LOG2_E = np.float32(1.44269504088896341)
_LN2_HIGH, _LN2_LOW = np.float32(-6.93145752e-1), np.float32(-1.42860677e-6)

EXP_POLYNOMIAL = (0.0013780593872070312, 0.008373124524950981, 0.041669536381959915,
                  0.166664719581604, 0.49999985098838806, 1.0)  # fmt: skip
"""(exp(r) - 1) / r near 0, highest power first. Source: MLAS, MlasComputeExp."""


def fused_multiply_add(
    a: Array | np.float32, b: Array | np.float32, c: Array | np.float32
) -> Array:
    """Compute a * b + c rounded to float32 once, as the FMA instructions of a CPU do.

    The operands are float32 arrays that broadcast. The product has 48 bits, so float64 holds it
    exactly. Where rounding the sum to float64 and then to float32 may differ from rounding it once,
    it is rounded to odd in float64: truncated, with the last bit set when anything was cut off.
    Because 53 >= 24 + 2 bits are kept, rounding that to float32 gives the exact sum's rounding.
    Source: IEEE 754-2019, 5.4.1 fusedMultiplyAdd; Boldo and Melquiond, "Emulation of FMA
    and correctly rounded sums: proved algorithms using rounding to odd" (2008).
    """
    with np.errstate(over="ignore", invalid="ignore"):
        product = a.astype(np.float64) * b.astype(np.float64)
        addend = c.astype(np.float64)
        total = np.asarray(product + addend)
        rounded: Array = np.asarray(total.astype(np.float32))
        doubtful = _may_round_twice(total)
        if np.any(doubtful):
            products, addends = np.broadcast_arrays(product, addend)
            odd = _rounded_to_odd(products[doubtful], addends[doubtful], total[doubtful])
            rounded[doubtful] = odd.astype(np.float32)
    return rounded


def _rounded_to_odd(product: Array, addend: Array, total: Array) -> Array:
    """The exact sum of two float64, of which `total` is the rounded one, rounded to odd instead."""
    # What the rounding of the sum lost, exactly (Knuth's TwoSum).
    seen = total - product
    lost = np.asarray((product - (total - seen)) + (addend - seen))
    bits = total.view(np.int64)
    inexact = (lost > 0) | (lost < 0)  # not for NaN, which infinities leave
    # An odd last bit is right already. An even one is where the sum was rounded to: the odd
    # neighbour on the side of the exact sum has a magnitude one step larger or smaller.
    step = np.where((lost > 0) == (total > 0), 1, -1)
    odd: Array = np.where(inexact & (bits & 1 == 0), bits + step, bits).view(np.float64)
    return odd


def _may_round_twice(total: Array) -> Array:
    """Where a float64 rounded to float32 may differ from the exact sum that it was rounded from.

    Only halfway between two float32, whose last 29 bits are 1 and zeros, and among the subnormal
    float32, which have fewer bits.
    """
    halfway = np.asarray((total.view(np.int64) & 0x1FFFFFFF) == 0x10000000)
    magnitudes = np.abs(total)
    if not magnitudes.size or magnitudes.min() >= _SMALLEST_NORMAL:
        return halfway
    return np.asarray(halfway | (magnitudes < _SMALLEST_NORMAL) & (total != 0))


def fused_polynomial(x: Array, coefficients: Sequence[float]) -> Array:
    """Horner's rule with one fused multiply-add a step; the highest power comes first.

    `x` is float32 of any shape, and so is the result.
    """
    value = np.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        value = fused_multiply_add(value, x, np.asarray(coefficient, np.float32))
    return value


def split_exponent(x: Array) -> tuple[Array, Array]:
    """The float32 r near 0 and the whole number m (int64) with x = m * ln 2 + r.

    Source: MLAS, MlasComputeExp; ln 2 is taken in two parts.
    """
    m = fused_multiply_add(x, _LOG2_E, _MAGIC) - _MAGIC
    r = fused_multiply_add(m, _LN2_LOW, fused_multiply_add(m, _LN2_HIGH, x))
    return r, m.astype(np.int64)


def power_of_two(exponent: Array) -> Array:
    """The float32 powers of two of whole numbers from -127 (gives 0) to 128 (gives infinity)."""
    bits = (exponent + 127) << 23
    power: Array = bits.astype(np.int32).view(np.float32)
    return power


def power(x: Array, exponent: Array, *, cubes: bool = False) -> Array:
    """`x` to the power of `exponent`, float arrays that broadcast, rounded correctly to float32.

    onnxruntime's is the C library's powf, which misses that by a unit in the last place now and
    then. With `cubes` the exponent 3 stands for x * x * x, as onnxruntime has it for one exponent
    beside a row of `x`. Results that are no real numbers are NaN.
    """
    base = np.asarray(x, np.float32)
    with np.errstate(all="ignore"):
        found = np.power(base.astype(np.float64), np.asarray(exponent, np.float64))
        rounded = np.asarray(found, np.float32)
        if cubes and np.any(np.equal(exponent, 3)):
            rounded = np.where(np.equal(exponent, 3), base * base * base, rounded)
    return rounded


def parametric_relu(x: Array, slope: Array) -> Array:
    """`x` where it is not negative, else `x` times `slope`; float arrays that broadcast."""
    found: Array = np.where(x < 0, x * slope, x)
    return found
