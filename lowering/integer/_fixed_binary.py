"""Element-wise arithmetic on two operands in integers alone, for the numerics `fixed`.

An operand is whole numbers times real scales: codes less their zero points, or ones times the
values of a constant. What an operator computes from two such operands is exact up to one rounding
by a multiplier. Two 8-bit operands take a table of all 65,536 results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from intonnx.ir.errors import CompileFailure
from intonnx.ir.quantization import all_codes
from intonnx.ir.types import Array, QuantParams, TensorType
from intonnx.lowering import fixed_point
from intonnx.lowering.fixed_point import BITS, Quotient, Scaling
from intonnx.lowering.reductions import largest_code
from intonnx.lowering.requantize import farthest, limited

from ._binary import has_table, pair_kernel, row_kernel
from .kernel import Context, Kernel

Whole = Callable[[Array, Array], Array]
"""From the whole numbers of both operands, which broadcast, to codes."""


class Operand(NamedTuple):
    """Whole numbers times scales.

    Attributes:
        scale: `Fraction`s in an object array that broadcasts over the whole numbers.
        whole: from the operand's array to its whole numbers, int64.
        largest: the largest magnitude of the whole numbers.
        real: whether it is a constant of real values, so that the whole numbers are 1 and 0.
    """

    scale: Array
    whole: Callable[[Array], Array]
    largest: int
    real: bool


_FAR = 1 << 19
"""From as many quanta on the digits of a multiplier with the other's shift can be too few."""

_GUARD_BITS = 16
_FARTHEST = 1 << 56
"""Quanta with 16 digits after the point beyond all results."""

Arithmetic = Callable[[Operand, Operand, QuantParams], Whole]


def fixed_kernel(arithmetic: Arithmetic, out: QuantParams, context: Context) -> Kernel:
    """Compile an operator to its arithmetic on whole numbers."""
    kinds = context.operand(0), context.operand(1)
    a, b = (operand_of(kind, context.constant(i)) for i, kind in enumerate(kinds))
    compute = arithmetic(a, b, out)
    if has_table(kinds[0]) and has_table(kinds[1]):
        codes = [all_codes(kind.params) for kind in kinds]
        return pair_kernel(compute(a.whole(codes[0])[:, None], b.whole(codes[1])), context)
    for data, (kind, whole) in enumerate(zip(kinds, (a.whole, b.whole), strict=True)):
        other = context.constant(1 - data)
        if has_table(kind) and other is not None and other.size == 1:
            row, single = whole(all_codes(kind.params)), (b, a)[data].whole(other.reshape(()))
            found = compute(row, single) if data == 0 else compute(single, row)
            return row_kernel(found.reshape(-1), data)

    def run(operands: Sequence[Any]) -> tuple[Array, ...]:
        return (compute(a.whole(operands[0]), b.whole(operands[1])),)

    return run


def operand_of(kind: TensorType, constant: Array | None) -> Operand:
    """An operand. Raises CompileFailure for real values that are not constant."""
    if kind.quant is None:
        if constant is None:
            raise CompileFailure("no fixed form: an operand has real values until run time")
        return _real(constant)
    scale, zero = kind.quant.along(kind.rank or 0)

    def centred(codes: Array) -> Array:
        whole: Array = codes.astype(np.int64)
        whole -= zero
        return whole

    return Operand(fixed_point.fractions(scale), centred, largest_code(kind.quant), False)


def _real(constant: Array) -> Operand:
    """Ones times the values of a constant, zeros times 1."""
    values = constant.astype(np.float64)
    if np.isnan(values).any():
        raise CompileFailure("no fixed form: a constant operand is not a number")
    # What is infinite is beyond every result.
    largest = float(np.finfo(np.float64).max)
    values = np.clip(values, -largest, largest)
    ones = (values != 0).astype(np.int64)
    scale = fixed_point.fractions(np.where(values == 0, 1.0, values))
    return Operand(scale, lambda real: ones.reshape(real.shape), 1, True)


def _quanta(scale: Array, out: QuantParams) -> Array:
    """Scales as multiples of that of the result, `Fraction`s."""
    # Arithmetic turns object arrays of rank 0 into their element.
    return np.asarray(scale / Fraction(float(out.scalar_scale)), object)


def sums(sign: int) -> Arithmetic:
    """The sum, or the difference for the sign -1.

    Both multipliers have one shift, and the sum of the products is rounded once. For accumulators,
    and codes of many quanta each, this would leave the smaller one too few digits: there both are
    turned into quanta with 16 digits after the point before they are added.
    """

    def arithmetic(a: Operand, b: Operand, out: QuantParams) -> Whole:
        reach = _reach([operand for operand in (a, b) if not operand.real], out)
        if reach >= _FAR:
            quanta_a, quanta_b = _quanta_of(a, out), _quanta_of(b, out)

            def guarded(x: Array, y: Array) -> Array:
                v = quanta_a(x) + sign * quanta_b(y)
                return limited(fixed_point.rounded_shift(v, _GUARD_BITS), out)

            return guarded
        (m_a, m_b), shift = _summands((a, b), out, 2 * (reach + farthest(out) + 1))
        m_b = m_b * sign

        def exact(x: Array, y: Array) -> Array:
            v = x * m_a
            v = np.asarray(v + y * m_b)
            return limited(fixed_point.rounded_shift(v, BITS - shift), out)

        return exact

    return arithmetic


def _reach(codes: Sequence[Operand], out: QuantParams) -> Fraction:
    """The largest whole number times the largest scale, in quanta: no summand is larger."""
    scales = [abs(scale) for operand in codes for scale in _quanta(operand.scale, out).flat]
    return max(scales, default=Fraction(0)) * max(operand.largest for operand in codes)


def _quanta_of(operand: Operand, out: QuantParams) -> Callable[[Array], Array]:
    """From whole numbers to quanta with 16 digits after the point."""
    quanta = _quanta(operand.scale, out) * (1 << _GUARD_BITS)
    if operand.real:
        limit = Fraction(_FARTHEST)
        addend = fixed_point.scaled_to(_clipped(np.asarray(quanta, object), limit), BITS)
        return lambda ones: np.asarray(ones * addend)
    factor = fixed_point.multiplier(np.asarray(quanta, object))
    return Scaling(factor, _FARTHEST)


def _summands(
    operands: Sequence[Operand], out: QuantParams, beyond: Fraction
) -> tuple[list[Array], int]:
    """A factor m * 2^(shift - 31) for each operand, with one shift.

    The m of codes are below 2^31, those of real constants below 2^60: a constant that is `beyond`
    decides alone.
    """
    quanta = [_quanta(operand.scale, out) for operand in operands]
    codes = [q for q, operand in zip(quanta, operands, strict=True) if not operand.real]
    real = any(operand.real for operand in operands)
    made = fixed_point.common_multipliers(
        codes, fixed_point.exponent(beyond) - 28 if real else -1000
    )
    shift, found = int(made[0].shift), iter(made)
    return [
        fixed_point.scaled_to(_clipped(q, beyond), shift) if operand.real else next(found).m
        for q, operand in zip(quanta, operands, strict=True)
    ], shift


def _clipped(factors: Array, reach: Fraction) -> Array:
    limited_factors = [min(max(factor, -reach), reach) for factor in np.ravel(factors).tolist()]
    return np.array(limited_factors, object).reshape(np.shape(factors))


def product(a: Operand, b: Operand, out: QuantParams) -> Whole:
    """The exact product and one multiplier."""
    scaling = Scaling(fixed_point.multiplier(_quanta(a.scale * b.scale, out)), farthest(out))
    return lambda x, y: limited(scaling(np.asarray(x * y)), out)


def rectified(a: Operand, b: Operand, out: QuantParams) -> Whole:
    """The left operand where it is not negative, else the product."""
    positive = Scaling(fixed_point.multiplier(_quanta(a.scale, out)), farthest(out))
    negative = Scaling(fixed_point.multiplier(_quanta(a.scale * b.scale, out)), farthest(out))

    sign = signs(a.scale)

    def compute(x: Array, y: Array) -> Array:
        x, y = np.broadcast_arrays(x, y)
        return limited(np.where(x * sign < 0, negative(x * y), positive(x)), out)

    return compute


def signs(scale: Array) -> Array:
    """1 or -1 for each scale: that of a real constant is its value, and can be negative."""
    return np.array([1 if f > 0 else -1 for f in np.ravel(scale)]).reshape(np.shape(scale))


def quotient(a: Operand, b: Operand, out: QuantParams) -> Whole:
    """The quotient, rounded once; the farthest code for one by 0, the least one for 0 / 0."""
    factor = fixed_point.multiplier(_quanta(a.scale / b.scale, out))
    divide = Quotient(factor, farthest(out), b.largest)
    return lambda x, y: limited(divide(x, y), out)
