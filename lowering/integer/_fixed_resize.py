"""Interpolation along axes in integers alone, for the numerics `fixed`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from intonnx.ir.errors import CompileFailure
from intonnx.ir.ops.resize import Resize
from intonnx.ir.types import Array, QuantParams
from intonnx.lowering import fixed_point
from intonnx.lowering.fixed_point import Scaling
from intonnx.lowering.reductions import largest_code
from intonnx.lowering.requantize import farthest, limited
from intonnx.lowering.resampling import cheapest_first, fill_outside, taps, weighted

WEIGHT_BITS = 30
"""Digits after the point of weights, or fewer for accumulators."""
_GUARD_BITS = 16
_FEWEST_BITS = 20


class FixedResize:
    """A resize of known sizes: weights of 30 binary digits, values with up to 16 between axes.

    Each axis ends in one rounding, and the codes in another. Raises CompileFailure when weights are
    so large that sums would leave int64.
    """

    def __init__(self, op: Resize, x: QuantParams, rank: int, sizes: Sequence[int]) -> None:
        extents = op.extents(sizes)
        planned = [taps(op, extent, index) for index, extent in enumerate(extents)]
        self._x, self._op = x, op
        self._guard, self._bits = _digits(x, [tap.weights for tap in planned])
        self._steps = [
            tap._replace(weights=whole_weights(tap.weights, self._bits)) for tap in planned
        ]
        growth = [tap.cells.shape[1] / max(1, e.before)
                  for tap, e in zip(planned, extents, strict=True)]  # fmt: skip
        self._order = cheapest_first(growth)
        scale, _ = x.along(rank)
        quantum = Fraction(float(op.out.scalar_scale)) * (1 << self._guard)
        factor = fixed_point.multiplier(np.asarray(fixed_point.fractions(scale) / quantum, object))
        self._scaling = Scaling(factor, farthest(op.out))

    def __call__(self, codes: Array) -> Array:
        """The resized codes."""
        value: Array = codes.astype(np.int64, order="K")
        value -= self._x.zero_along(codes.ndim)
        value <<= self._guard
        for index in self._order:
            axis, step = self._op.axes[index], self._steps[index]
            value = weighted(value, axis, step, 1 << self._bits, self._rounded)
        result = limited(self._scaling(value), self._op.out)
        fill_outside(self._op, result, [step.outside for step in self._steps])
        return result

    def _rounded(self, total: Array) -> Array:
        return fixed_point.rounded_shift(total, self._bits)


def _digits(x: QuantParams, weights: Sequence[Array]) -> tuple[int, int]:
    """Digits after the point of values and of weights that leave all sums below 2^61."""
    largest = float(largest_code(x))
    for axis in weights:
        largest *= max(1.0, float(np.abs(axis).sum(axis=0).max(initial=0)))
    left = 60 - math.frexp(largest)[1]
    guard = min(max(left - WEIGHT_BITS, 0), _GUARD_BITS)
    bits = min(WEIGHT_BITS, left - guard)
    if bits < _FEWEST_BITS:
        raise CompileFailure("no fixed form: the weights of its interpolation are too large")
    return guard, bits


def whole_weights(weights: Array, bits: int = WEIGHT_BITS) -> Array:
    """Weights [taps, ...] times 2^bits as whole numbers; sums along the first axis stay exact."""
    one = 1 << bits
    whole: Array = np.rint(weights * one).astype(np.int64)
    # What rounding took from a sum goes to the largest weight.
    missing = np.rint(weights.sum(axis=0) * one).astype(np.int64) - whole.sum(axis=0)
    largest = np.expand_dims(np.argmax(weights, axis=0), 0)
    np.put_along_axis(whole, largest, np.take_along_axis(whole, largest, 0) + missing, 0)
    return whole
