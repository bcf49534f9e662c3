"""Means in integers alone, for the numerics `fixed`: exact sums, one multiplier a count."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

import numpy as np

from intonnx.ir.types import Array, QuantParams
from intonnx.lowering import fixed_point
from intonnx.lowering.requantize import farthest, limited


class FixedMean:
    """From sums of (code - zero point) and how many there are of each to codes of the means.

    The multiplier is that of x.scale / (out.scale * count). Those of new counts are made when they
    come, which is at compile time where the sizes are known.
    """

    def __init__(self, x: QuantParams, out: QuantParams) -> None:
        self._ratio = Fraction(float(x.scalar_scale)) / Fraction(float(out.scalar_scale))
        self._out = out
        self._scaling = lru_cache(maxsize=64)(self._new_scaling)

    def prepare(self, counts: Array) -> None:
        """Make the multipliers for these counts."""
        if counts.all():
            self._scaling(counts.shape, tuple(counts.ravel().tolist()))

    def __call__(self, sums: Array, counts: Array) -> Array:
        """Codes in the shape of `sums`; `counts` are whole numbers that broadcast.

        A mean of nothing is no number, which has the least code.
        """
        if not counts.all():
            return np.full(sums.shape, self._out.qmin, self._out.storage.numpy)
        scaling = self._scaling(counts.shape, tuple(counts.ravel().tolist()))
        return limited(scaling(sums), self._out)

    def _new_scaling(self, shape: tuple[int, ...], counts: tuple[int, ...]) -> fixed_point.Scaling:
        factors = fixed_point.object_array([self._ratio / count for count in counts])
        factor = fixed_point.multiplier(factors.reshape(shape))
        return fixed_point.Scaling(factor, farthest(self._out))
