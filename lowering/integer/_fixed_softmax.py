"""Softmax in integers alone, for the numerics `fixed`."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from intonnx.ir.errors import CompileFailure
from intonnx.ir.types import Array, QuantParams
from intonnx.lowering import fixed_functions, fixed_point
from intonnx.lowering.fixed_point import Quotient, Scaling
from intonnx.lowering.requantize import farthest, limited

Rows = Callable[[Array], Array]
"""From rows of codes [R, D] to rows of codes [R, D]."""
_EXP_BITS = 30
_GUARD_BITS = 16
"""Digits after the point that the two parts of a logarithm of softmax are added with."""


def fixed_rows(x: QuantParams, out: QuantParams, logarithm: bool) -> Rows:
    """Exponentials from a table by the distance from the row's maximum, and an integer sum.

    softmax: one quotient of an exponential and the sum, rounded once. Its logarithm: the distance
    and the logarithm of the sum, each as quanta with 16 digits after the point.
    """
    scale, quantum = Fraction(float(x.scalar_scale)), Fraction(float(out.scalar_scale))
    exponentials = fixed_functions.exponentials(scale, _distances(x), _EXP_BITS)
    finish = _logarithm(scale, quantum, x, out) if logarithm else _quotient(quantum, out)

    def run(codes: Array) -> Array:
        whole = codes.astype(np.int32)
        below = whole.max(axis=-1, keepdims=True) - whole
        e = exponentials.take(below)
        return limited(finish(below, e, e.sum(axis=-1, keepdims=True)), out)

    return run


def _distances(x: QuantParams) -> int:
    """How many distances two codes can have."""
    return x.storage.high - x.storage.low + 1


Finish = Callable[[Array, Array, Array], Array]
"""From distances below the maximum, exponentials and their sums to quanta, int64."""


def _quotient(quantum: Fraction, out: QuantParams) -> Finish:
    if 1 / quantum >= 1 << fixed_point.BITS:
        raise CompileFailure("no fixed form: the scale of the result is at most 2^-31")
    factor = fixed_point.multiplier(fixed_point.object_array([1 / quantum]))
    divide = Quotient(factor, farthest(out), 1 << 62)
    return lambda below, e, total: divide(e, total)


def _logarithm(scale: Fraction, quantum: Fraction, x: QuantParams, out: QuantParams) -> Finish:
    ones = 1 << _GUARD_BITS
    distance = fixed_point.multiplier(fixed_point.object_array([-scale / quantum * ones]))
    distances = Scaling(distance, 1 << 40)(np.arange(_distances(x)))
    ln2 = -fixed_functions.LN_2 / quantum * ones / (1 << fixed_functions.LOG_BITS)
    logarithms = Scaling(fixed_point.multiplier(fixed_point.object_array([ln2])), 1 << 40)

    def finish(below: Array, e: Array, total: Array) -> Array:
        lifted = fixed_functions.log2(total) - (_EXP_BITS << fixed_functions.LOG_BITS)
        parts = distances.take(below) + logarithms(lifted)
        return fixed_point.rounded_shift(parts, _GUARD_BITS)

    return finish
