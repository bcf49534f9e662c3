"""What a sum of products can reach, proven from types and constant weights.

Each accumulating operator answers with `Bounds` (`Op.accumulator_bounds`); the functions here do
the arithmetic that they share.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from .types import Array, DType, TensorType, static_shape

INT16_MAX = 32767


@dataclass(frozen=True)
class Bounds:
    """The proven bounds of an accumulator, one entry a channel; one in all where they are alike.

    Attributes:
        low, high: the smallest and the largest sum, int64.
        saturates: whether a pair of products of raw codes can leave int16, bool.
    """

    low: Array
    high: Array
    saturates: Array

    def with_bias(self, kind: TensorType | None, bias: Array | None) -> Bounds:
        """The bounds with an int32 bias whose last axis is that of the channels, or has one entry.

        `kind` is its type, None when there is none; `bias` the array when it is constant.
        """
        if kind is None:
            return self
        if bias is None:
            return replace(self, low=self.low + DType.I32.low, high=self.high + DType.I32.high)
        rows = bias.astype(np.int64).reshape(-1, bias.shape[-1] if bias.ndim else 1)
        if rows.size == 0:
            return self
        # The sums of all channels are alike where there is one entry for them.
        low, high = self.low + rows.min(axis=0), self.high + rows.max(axis=0)
        return Bounds(low, high, np.broadcast_to(self.saturates, low.shape))

    def merged(self, channels: int) -> Bounds:
        """The bounds of so many channels, each over all the rest."""
        low, high, saturates = (
            array.reshape(-1, channels) for array in (self.low, self.high, self.saturates)
        )
        return Bounds(low.min(axis=0), high.max(axis=0), np.asarray(saturates.any(axis=0)))


Limits = tuple[int, int]
"""The smallest and the largest value."""


def centred_limits(kind: TensorType, zero: Array | None = None) -> Limits:
    """The limits of code minus zero point, 0 among them as that is what padding adds.

    `zero` is the zero point of plain integers; when it is not known any may come.
    """
    low, high, zeros = kind.dtype.low, kind.dtype.high, zero
    if kind.quant is not None:
        low, high, zeros = kind.quant.qmin, kind.quant.qmax, kind.quant.zero_point
    if zeros is None:
        return low - high, high - low
    if zeros.size == 0:
        return 0, 0
    return min(0, low - int(zeros.max())), max(0, high - int(zeros.min()))


def sums_of(x: TensorType, count: int) -> Bounds:
    """The bounds of the sum of so many codes minus zero points."""
    low, high = centred_limits(x)
    return _alike(low * count, high * count, saturates=False)


def weighted_sums(limits: Limits, weights: Array) -> Bounds:
    """The bounds of values within `limits` times whole numbers [reduction, channels]."""
    wide = weights.astype(np.int64, copy=False)
    positive = np.maximum(wide, 0).sum(axis=0)
    negative = np.minimum(wide, 0).sum(axis=0)
    low = positive * limits[0] + negative * limits[1]
    high = positive * limits[1] + negative * limits[0]
    return Bounds(low, high, np.zeros(low.shape, bool))


def products_of(x: Limits, w: Limits, count: int) -> Bounds:
    """The bounds of the sum of so many products of values within these limits."""
    products = [a * b for a in x for b in w]
    return _alike(min(products) * count, max(products) * count, saturates=False)


def _alike(low: int, high: int, *, saturates: bool) -> Bounds:
    return Bounds(np.asarray([low]), np.asarray([high]), np.asarray([saturates]))


def columns(w: Array, reduction_axes: Sequence[int]) -> Array:
    """The weights as [reduction, channels]."""
    first = np.moveaxis(w, reduction_axes, range(len(reduction_axes)))
    return first.reshape(math.prod(first.shape[: len(reduction_axes)]), -1)


def saturating_sums(weights: Array, x: TensorType) -> Array:
    """For each column of raw s8 codes [reduction, channels]: whether a pair can leave int16.

    Only u8 activations `x` are in danger. Which weights of a sum are added as a pair depends on
    the kernel, so the two largest magnitudes of one sign decide.
    """
    if x.dtype is not DType.U8 or weights.size == 0:
        return np.zeros(weights.shape[1], bool)
    x_max = x.dtype.high if x.quant is None else x.quant.qmax
    count = min(2, len(weights))
    wide = weights.astype(np.int16, copy=False)
    largest = np.partition(wide, len(wide) - count, axis=0)[-count:]
    smallest = np.partition(wide, count - 1, axis=0)[:count]
    highest = np.maximum(largest, 0).sum(axis=0, dtype=np.int64)
    lowest = -np.minimum(smallest, 0).sum(axis=0, dtype=np.int64)
    return np.asarray((x_max * highest > INT16_MAX) | (x_max * lowest > INT16_MAX + 1))


def product_bounds(
    operands: Sequence[TensorType | None],
    constants: Sequence[Array | None],
    reduction: Sequence[int],
    channels: int,
) -> Bounds | None:
    """The bounds of `x` times `w` plus a bias, for the operators that take just these operands.

    Args:
        operands: `x`, `w`, and where there are any a bias and the zero points of plain integers.
        constants: the arrays of those that are constant.
        reduction: the axes of `w` that are added up.
        channels: the axis of `w` along which its zero points lie.

    None when `w` is computed at run time and the length of a sum is not known.
    """
    given, known = [*operands, None, None, None], [*constants, None, None, None]
    x, w = given[0], given[1]
    if x is None or w is None or w.shape is None:
        return None
    zeros = [_zero(kind, array) for kind, array in zip(given[3:5], known[3:5], strict=True)]
    limits, codes = centred_limits(x, zeros[0]), known[1]
    w_zeros = zeros[1] if w.quant is None else w.quant.zero_point
    if codes is not None and w_zeros is not None:
        raw = columns(codes, reduction)
        centred = codes.astype(np.int64) - _along(w_zeros, codes.ndim, channels)
        found, count = weighted_sums(limits, columns(centred, reduction)), len(raw)
    else:
        lengths = static_shape([w.shape[axis] for axis in reduction])
        if lengths is None:
            return None
        raw, count = None, math.prod(lengths)
        found = products_of(limits, centred_limits(w, zeros[1]), count)
    found = replace(found, saturates=_saturates(x, w, raw, found.low, count))
    last = codes.shape[-1] if codes is not None and channels == codes.ndim - 1 else 0
    if last and found.low.size > last:  # a batch of matrices
        found = found.merged(last)
    return found.with_bias(given[2], known[2])


def _zero(kind: TensorType | None, array: Array | None) -> Array | None:
    """The zero point that an operand gives: 0 when it is absent, None when it is not known."""
    return np.zeros((), np.int64) if kind is None else array


def _along(zeros: Array, rank: int, axis: int) -> Array:
    if zeros.ndim != 1 or zeros.size == 1:
        return zeros.astype(np.int64)
    return zeros.astype(np.int64).reshape([-1 if i == axis else 1 for i in range(rank)])


def _saturates(x: TensorType, w: TensorType, raw: Array | None, low: Array, count: int) -> Array:
    """For each channel, what u8 times s8 kernels do to a pair of raw codes of `x` and `w`.

    Either side may be the unsigned one.
    """
    if raw is not None and (x.dtype, w.dtype) == (DType.U8, DType.I8):
        return saturating_sums(raw, x)
    mixed = {x.dtype, w.dtype} == {DType.U8, DType.I8}
    return np.full(low.shape, mixed and count > 1)
