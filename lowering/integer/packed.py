"""Sums of products x @ w + b in blocks of rows, with `w` and `b` packed for the exact BLAS product.

Codes have a range, so a sum of any of the products lies between the sum of the negative and that of
the positive extremes of each product. A block is exact in a float type that holds both bounds: no
order of the additions leaves them. The bias is one more row of the weights, for a column of ones.

Zero points of `x` go into the bias, sum((x - z) * w) = sum(x * w) - z * sum(w), wherever the raw
codes need no wider type than the centred ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from intonnx.ir.types import Array

from .exact import FLOAT32_EXACT, FLOAT64_EXACT

_MAX_PARTS = 4
"""With more parts than this, float64 is faster than float32."""
_PANEL_ELEMENTS = 1 << 16
"""Elements of a block of columns, and of its sums: both stay in the cache of a core."""
_LEAST_ROWS = 128
"""A product of fewer rows reads the weights too often."""
_MOST_ROWS = 1024


@dataclass(frozen=True)
class CodeRange:
    """Codes from `low` to `high` that mean their distance from `zero`; `zero` pads.

    `zero` is None when it is known at run time only; it is then any code of the range.
    """

    low: int
    high: int
    zero: int | None

    def distances(self) -> tuple[int, int]:
        """The least and the greatest of code - zero, at most and at least 0."""
        if self.zero is None:
            return self.low - self.high, self.high - self.low
        return min(self.low - self.zero, 0), max(self.high - self.zero, 0)

    def raw(self) -> tuple[int, int]:
        """The least and the greatest code, at most and at least 0, padding among them."""
        assert self.zero is not None
        return min(self.low, self.zero, 0), max(self.high, self.zero, 0)


class PackedWeights:
    """Centred weights [G, K, O] and biases [G, O] of G groups, packed for one kind of columns.

    Attributes:
        rows: how many rows a block should have.
        columns_dtype: the type of columns: float32, float64 or int64.
        bound: the largest |sum|, biases included.
    """

    def __init__(self, w: Array, bias: Array | None, codes: CodeRange, *, rounded: bool) -> None:
        """Pack.

        Args:
            w: whole numbers, zero points subtracted.
            bias: whole numbers; None for zeros.
            codes: the left side.
            rounded: whether sums may be rounded to float32, once.
        """
        groups, k, outputs = w.shape
        if bias is None:
            bias = np.zeros((groups, outputs), np.int64)
        centred = _Layout(w, bias, *codes.distances())
        self.bound, chosen = centred.bound, centred
        if codes.zero is not None:
            shifted = bias - codes.zero * w.sum(axis=1)
            raw = _Layout(w, shifted, *codes.raw())
            if codes.zero == 0 or raw.cost <= centred.cost:
                chosen = raw
        self._subtracted = chosen is centred and codes.zero != 0
        self.columns_dtype = chosen.dtype
        self._parts = chosen.parts
        self._packed = chosen.packed()
        self._rounded = rounded and len(self._parts) == 2
        single = len(self._parts) == 1 or self._rounded
        self.sums_dtype = self.columns_dtype if single else np.dtype(np.float64)
        self._shape = groups, k, outputs
        panel = _PANEL_ELEMENTS // max(1, k, outputs * groups)
        self.rows = min(_MOST_ROWS, max(_LEAST_ROWS, panel // _LEAST_ROWS * _LEAST_ROWS))

    def columns(self, rows: int) -> Array:
        """A new array [G, rows, K + 1] for columns, with the ones of the bias in place."""
        groups, k, _ = self._shape
        made = np.empty((groups, rows, k + 1), self.columns_dtype)
        made[..., k] = 1
        return made

    def sums(self, rows: int) -> Array:
        """A new array [G, rows, O] for sums."""
        groups, _, outputs = self._shape
        return np.empty((groups, rows, outputs), self.sums_dtype)

    def multiply(self, columns: Array, out: Array, x_zero: int) -> None:
        """The sums of columns [G, rows, K + 1] of codes into `out` [G, rows, O].

        Columns are given up. `x_zero` is the zero point of the codes.
        """
        if self._subtracted and x_zero:
            columns[..., :-1] -= columns.dtype.type(x_zero)
        if len(self._packed) == 1:
            np.matmul(columns, self._packed[0], out=out)
            return
        # The sum of two exact float32 numbers in float32 is their exact sum, rounded once.
        first = np.matmul(columns[..., self._parts[0]], self._packed[0])
        out[...] = first
        for part, w in zip(self._parts[1:], self._packed[1:], strict=True):
            np.matmul(columns[..., part], w, out=first)
            out += first


class _Layout:
    """How weights and their bias would be packed for factors from `low` to `high`."""

    def __init__(self, w: Array, bias: Array, low: int, high: int) -> None:
        self._matrix = np.concatenate([w, bias[:, None]], axis=1)
        down, up = np.minimum(w * low, w * high), np.maximum(w * low, w * high)
        up = np.concatenate([up, np.maximum(bias, 0)[:, None]], axis=1)
        down = np.concatenate([down, np.minimum(bias, 0)[:, None]], axis=1)
        largest = np.maximum(up.sum(axis=1), -down.sum(axis=1))
        self.bound = int(largest.max(initial=0))
        whole = [slice(0, self._matrix.shape[1])]
        factor = max(-low, high, int(np.abs(self._matrix).max(initial=0)))
        split = None if factor >= FLOAT32_EXACT else _split(up, -down)
        self.dtype: np.dtype[Any] = np.dtype(np.float32)
        if split is not None:
            self.parts, self.cost = split, len(split)
        elif self.bound < FLOAT64_EXACT:
            self.parts, self.cost, self.dtype = whole, _MAX_PARTS + 1, np.dtype(np.float64)
        else:
            self.parts, self.cost, self.dtype = whole, _MAX_PARTS + 2, np.dtype(np.int64)

    def packed(self) -> list[Array]:
        return [np.ascontiguousarray(self._matrix[:, part], self.dtype) for part in self.parts]


def _split(up: Array, down: Array) -> list[slice] | None:
    """Ranges of the rows whose sums stay exact in float32; None when there are too many.

    `up` and `down` [G, rows, O] are the largest contributions of either sign, not negative.
    """
    rises, falls = up.cumsum(axis=1), down.cumsum(axis=1)
    count, parts, start = up.shape[1], list[slice](), 0
    while start < count:
        before = [s[:, start - 1 : start] if start else 0 for s in (rises, falls)]
        reach = np.maximum(rises - before[0], falls - before[1]).max(axis=(0, 2), initial=0)
        # The sums grow along the rows, so the count of exact rows is the end of the part.
        end = int((reach < FLOAT32_EXACT).sum())
        if end <= start or len(parts) == _MAX_PARTS:
            return None
        parts.append(slice(start, end))
        start = end
    return parts
