"""Powers in integers alone, for the numerics `fixed`: by logarithms to the base 2."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from intonnx.ir.errors import CompileFailure
from intonnx.ir.ops.lrn import LocalResponseNorm
from intonnx.ir.types import Array, QuantParams
from intonnx.lowering import fixed_functions, fixed_point
from intonnx.lowering.fixed_functions import LOG_BITS
from intonnx.lowering.fixed_point import BITS, Scaling
from intonnx.lowering.reductions import largest_code
from intonnx.lowering.requantize import farthest, limited

from ._fixed_binary import Operand, Whole, signs

_FEW_BITS = 12
"""Digits of a logarithm that a product with an exponent leaves out."""
_WIDE = 1 << 20
"""Operands of up to 16 bits stay below."""
_FARTHEST = 1 << (LOG_BITS + 8)
"""Exponents beyond 2^8 give results beyond all codes, or 0."""


def raised(x: Array, exponents: Array, out: QuantParams) -> Array:
    """Codes of x * 2^(exponents / 2^40) quanta for whole numbers `x` below 2^31, int64."""
    m, shift = fixed_functions.exp2(np.clip(exponents, -_FARTHEST, _FARTHEST))
    return limited(fixed_point.rounded_shift(x * m, BITS - shift), out)


class FixedResponse:
    """x / (bias + alpha / size * squares) ** beta as q * 2^(log2(scale / out.scale) - beta * log2).

    `q` are codes less their zero points, the base is one sum of the squares of `q` times a
    multiplier and of the bias.
    """

    def __init__(self, op: LocalResponseNorm, x: QuantParams) -> None:
        if op.bias < 0 or op.alpha < 0 or op.bias + op.alpha == 0 or op.size < 1:
            raise CompileFailure("no fixed form: the base of its power can be negative or 0")
        scale = Fraction(float(x.scalar_scale))
        self._out = op.out
        factor = Fraction(op.alpha) / op.size * scale**2
        # Products of sums of squares, and the bias, stay below 2^61.
        digits = (largest_code(x) ** 2 * op.size).bit_length()
        bias_shift = fixed_point.exponent(Fraction(op.bias)) - 29
        least = max(fixed_point.exponent(factor) + max(0, digits - 29), bias_shift)
        made = fixed_point.common_multipliers([fixed_point.object_array([factor])], least)[0]
        self._m, self._shift = int(made.m[0]), int(made.shift)
        self._bias = round(Fraction(op.bias) * Fraction(2) ** (BITS - self._shift))
        beta = fixed_point.multiplier(fixed_point.object_array([-Fraction(op.beta)]))
        self._beta = Scaling(beta, 1 << 56)
        quantum = Fraction(float(op.out.scalar_scale))
        self._quanta = fixed_functions.log2_of(scale / quantum)

    def __call__(self, q: Array, squares: Array) -> Array:
        """Codes for whole numbers and the sums of squares around each, int64."""
        base = squares * self._m + self._bias
        logarithms = fixed_functions.log2(np.maximum(base, 1)) - (BITS - self._shift << LOG_BITS)
        result = raised(q.astype(np.int64), self._beta(logarithms) + self._quanta, self._out)
        # Without a bias 0 is divided by 0, and what is no number has the least code.
        return np.where(base == 0, self._out.storage.numpy.type(self._out.qmin), result)


def power(a: Operand, b: Operand, out: QuantParams) -> Whole:
    """2 to b times the logarithm of |a|, with the sign that a whole power of a negative a has.

    Powers of 0 are 0, 1 or beyond all codes; other powers of a negative number are no real numbers,
    which have the least code.
    """
    if max(a.largest, b.largest) >= _WIDE:
        raise CompileFailure("no fixed form: a power of more than 16 bits")
    logarithm, sign, exponent_sign = _logarithms(a.scale), signs(a.scale), signs(b.scale)
    exponent = Scaling(fixed_point.multiplier(np.asarray(b.scale, object)), 1 << 56)
    quantum = fixed_functions.log2_of(1 / Fraction(float(out.scalar_scale)))
    parity, beyond = _parity(b.scale), farthest(out) + 1
    few = _FARTHEST >> _FEW_BITS

    def compute(x: Array, y: Array) -> Array:
        logarithms = fixed_functions.log2(np.maximum(np.abs(x), 1)) + logarithm
        real = exponent(fixed_point.rounded_shift(logarithms, _FEW_BITS) * y)
        real = np.clip(real, -few, few) << _FEW_BITS
        m, shift = fixed_functions.exp2(real + quantum)
        v = np.minimum(fixed_point.rounded_shift(m, BITS - shift), beyond)
        whole, odd = parity(y)
        below = np.where(whole, np.where(odd, -v, v), -beyond)
        of_zero = np.where(y == 0, v, np.where(y * exponent_sign > 0, 0, beyond))
        v = np.where(x * sign < 0, below, np.where(x == 0, of_zero, v))
        return limited(v, out)

    return compute


def _logarithms(scale: Array) -> Array:
    flat = np.ravel(scale).tolist()
    known = {factor: fixed_functions.log2_of(abs(factor)) for factor in set(flat)}
    return np.array([known[factor] for factor in flat], np.int64).reshape(np.shape(scale))


def _parity(scale: Array) -> Callable[[Array], tuple[Array, Array]]:
    """From whole numbers to whether their products with floats are whole, and odd.

    A product that is whole when it is rounded to float32 counts as whole.
    """
    flat = np.ravel(scale).tolist()
    numerators = np.array([f.numerator for f in flat], np.int64).reshape(np.shape(scale))
    # Denominators of floats are powers of two; products are below 2^61.
    digits = [min(f.denominator.bit_length() - 1, 62) for f in flat]
    bits = np.array(digits, np.int64).reshape(np.shape(scale))

    def run(y: Array) -> tuple[Array, Array]:
        products = np.asarray(y * numerators)
        nearest = products + (np.left_shift(1, bits) >> 1) >> bits
        rest = products - np.left_shift(nearest, bits)
        return np.abs(rest) <= np.abs(np.left_shift(nearest, bits)) >> 24, nearest & 1 == 1

    return run
