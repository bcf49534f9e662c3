"""Sliding windows over channels-last arrays: what convolutions and pools share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from intonnx.ir.types import Array


def windows_of(
    x: Array, kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
) -> Array:
    """A view [N, *out, C, *kernel] of every window of `x` [N, *spatial, C]."""
    n = len(kernel)
    spans = tuple((k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True))
    if any(size < span for size, span in zip(x.shape[1:-1], spans, strict=True)):
        sizes = [
            max(0, (size - span) // stride + 1)
            for size, span, stride in zip(x.shape[1:-1], spans, strides, strict=True)
        ]
        return np.zeros((x.shape[0], *sizes, x.shape[-1], *kernel), x.dtype)
    view = sliding_window_view(x, spans, axis=tuple(range(1, n + 1)))
    steps = tuple(slice(None, None, stride) for stride in strides)
    holes = tuple(slice(None, None, dilation) for dilation in dilations)
    windows: Array = view[(slice(None), *steps, slice(None), *holes)]
    return windows


def padded(x: Array, pads: Sequence[int], fill: float, dtype: np.dtype[np.generic]) -> Array:
    """A new array of `dtype`: `x` [N, *spatial, C] with cells of `fill` around its spatial axes.

    `pads` holds the cells before each spatial axis, then those after each.
    """
    n = x.ndim - 2
    if not any(pads):
        copy: Array = x.astype(dtype, order="C")
        return copy
    sizes = [x.shape[1 + i] + pads[i] + pads[n + i] for i in range(n)]
    out = np.full((x.shape[0], *sizes, x.shape[-1]), fill, dtype)
    out[(slice(None), *(slice(pads[i], pads[i] + x.shape[1 + i]) for i in range(n)))] = x
    return out


def blocks(shape: Sequence[int], places: int, most: int) -> Iterator[tuple[slice, slice]]:
    """Ranges of images and of rows that cut `shape` = [N, rows, ...] into pieces.

    Each row has this many places, each piece at most `most` of them but at least one row. A piece
    is part of one image, or whole images.
    """
    images, rows = shape[0], shape[1]
    together = max(1, most // max(1, rows * places))
    height = rows if together > 1 else max(1, most // max(1, places))
    for image in range(0, images, together):
        for row in range(0, rows, max(1, height)):
            yield slice(image, image + together), slice(row, row + height)
