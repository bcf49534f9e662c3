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


_NARROW = 1 << 20
"""Products of smaller whole numbers with multipliers, and their sums, stay far inside int64."""

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
    # What is no number is below all others, and what is infinite beyond every result.
    largest = float(np.finfo(np.float64).max)
    values = np.clip(np.where(np.isnan(values), -largest, values), -largest, largest)
    ones = (values != 0).astype(np.int64)
    scale = fixed_point.fractions(np.where(values == 0, 1.0, values))
    return Operand(scale, lambda real: ones.reshape(real.shape), 1, True)


def _quanta(scale: Array, out: QuantParams) -> Array:
    """Scales as multiples of that of the result, `Fraction`s."""
    # Arithmetic turns object arrays of rank 0 into their element.
    return np.asarray(scale / Fraction(float(out.scalar_scale)), object)


def sums(sign: int) -> Arithmetic:
    """The sum, or the difference for the sign -1: both multipliers have one shift."""

    def arithmetic(a: Operand, b: Operand, out: QuantParams) -> Whole:
        m, shift = _summands((a, b), out)
        m_a, m_b = m[0], m[1] * sign
        total = BITS - shift

        def exact(x: Array, y: Array) -> Array:
            v = x * m_a
            v = np.asarray(v + y * m_b)
            return limited(fixed_point.rounded_shift(v, total), out)

        def split(x: Array, y: Array) -> Array:
            (high, low), (high_b, low_b) = fixed_point.limbs(x, m_a), fixed_point.limbs(y, m_b)
            v = fixed_point.rounded_limbs(high + high_b, low + low_b, np.asarray(shift))
            return limited(v, out)

        return split if max(a.largest, b.largest) >= _NARROW else exact

    return arithmetic


def _summands(operands: Sequence[Operand], out: QuantParams) -> tuple[list[Array], int]:
    """A factor m * 2^(shift - 31) for each operand, with one shift.

    The m of codes are below 2^31, those of real constants below 2^60.
    """
    quanta = [_quanta(operand.scale, out) for operand in operands]
    codes = [q for q, operand in zip(quanta, operands, strict=True) if not operand.real]
    largest = max(
        max(map(abs, q.flat)) * operand.largest
        for q, operand in zip(quanta, operands, strict=True)
        if not operand.real
    )
    # A constant that is farther away decides alone, and so does one at this distance.
    reach = 2 * (largest + farthest(out) + 1)
    real = any(operand.real for operand in operands)
    least = fixed_point.exponent(reach) - 28 if real else -1000
    made = fixed_point.common_multipliers(codes, least)
    shift = int(made[0].shift)
    found = iter(made)
    return [
        fixed_point.scaled_to(_clipped(q, reach), shift) if operand.real else next(found).m
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

    def compute(x: Array, y: Array) -> Array:
        x, y = np.broadcast_arrays(x, y)
        return limited(np.where(x < 0, negative(x * y), positive(x)), out)

    return compute


def quotient(a: Operand, b: Operand, out: QuantParams) -> Whole:
    """The quotient, rounded once; the farthest code for one by 0, the least one for 0 / 0."""
    factor = fixed_point.multiplier(_quanta(a.scale / b.scale, out))
    divide = Quotient(factor, farthest(out), b.largest)
    return lambda x, y: limited(divide(x, y), out)
