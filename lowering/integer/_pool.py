"""What the kernels of max pools and average pools share: cells of windows as strided views."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from intonnx.ir.ops._pool import Pool
from intonnx.ir.types import Array, QuantParams


class Windows:
    """The windows of a pool over known sizes.

    Attributes:
        counts: the number of windows along each spatial axis.
        pads: cells of padding before each spatial axis, then after each.
    """

    def __init__(self, op: Pool, sizes: Sequence[int]) -> None:
        self._op = op
        self._sizes = tuple(sizes)
        self.counts = tuple(max(0, int(count)) for count in op.pooled(sizes))
        self.pads = op.padding(sizes)
        # The last window may reach beyond the padding, or leave some of it out.
        self._after = [
            max(0, (count - 1) * stride + (k - 1) * d + 1 - size - before)
            for count, stride, k, d, size, before in zip(
                self.counts, op.strides, op.kernel, op.dilations, sizes, self.pads, strict=False
            )
        ]

    def extended(self, x: Array, fill: float) -> Array:
        """`x` [N, C, *spatial] with `fill` around it wherever a window reaches, in its layout."""
        n = len(self._sizes)
        before = self.pads[:n]
        if not any(before) and not any(self._after):
            return x
        shape = [size + b + a for size, b, a in zip(self._sizes, before, self._after, strict=True)]
        out = np.full_like(x, fill, shape=(*x.shape[:2], *shape))
        inner = (slice(b, b + size) for b, size in zip(before, self._sizes, strict=True))
        out[(slice(None), slice(None), *inner)] = x
        return out

    def taps(self, x: Array, axis: int) -> Iterator[Array]:
        """Views of `x` by the cells that windows have along one spatial axis, in order."""
        op = self._op
        for k in range(op.kernel[axis]):
            yield x[(slice(None),) * (2 + axis) + (self._slice(axis, k),)]

    def cells(self, x: Array) -> Iterator[Array]:
        """Views [N, C, *counts] of `x` by the cells of the windows, in row order."""
        for cell in np.ndindex(*self._op.kernel):
            yield x[(slice(None), slice(None), *(self._slice(i, k) for i, k in enumerate(cell)))]

    def _slice(self, axis: int, k: int) -> slice:
        stride, start = self._op.strides[axis], k * self._op.dilations[axis]
        return slice(start, start + max(0, (self.counts[axis] - 1) * stride + 1), stride)

    def cell_counts(self, *, with_padding: bool) -> Array:
        """int64 [*counts]: the cells of each window that hold data, or data and padding.

        1 where there is none.
        """
        op, n = self._op, len(self._sizes)
        total: Array = np.ones((), np.int64)
        for i, (size, count) in enumerate(zip(self._sizes, self.counts, strict=True)):
            before, after = (self.pads[i], self.pads[n + i]) if with_padding else (0, 0)
            starts = np.arange(count) * op.strides[i] - self.pads[i]
            at = starts[:, None] + np.arange(op.kernel[i]) * op.dilations[i]
            total = total[..., None] * ((at >= -before) & (at < size + after)).sum(axis=1)
        return np.maximum(total, 1)


def channels_first(x: Array, channels_last: bool) -> Array:
    """A view [N, C, *spatial] of `x`."""
    return np.moveaxis(x, -1, 1) if channels_last else x


def as_given(x: Array, channels_last: bool) -> Array:
    """The inverse of `channels_first`."""
    return np.moveaxis(x, 1, -1) if channels_last else x


def dequantized(x: Array, params: QuantParams) -> Array:
    """A new float32 array of real values in the layout of `x`."""
    values: Array = x.astype(np.float32)
    values -= np.float32(params.scalar_zero_point)
    values *= params.scalar_scale
    return values
