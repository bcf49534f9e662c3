"""Convolutions of one channel each: multiply-adds over channels-last rows, in blocks of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from intonnx.ir.ops.conv import Conv
from intonnx.ir.types import Array

from .exact import FLOAT32_EXACT, exact_dtype
from .packed import CodeRange

_STRETCH = 2048
"""Elements of a row that one inner loop runs over: places times channels."""
_BLOCK_ELEMENTS = 1 << 15
"""Sums of a block of rows: they, their columns and their weights fit into the cache of a core."""

Store = Callable[[Any, Array], None]


@dataclass(frozen=True)
class _Residue:
    """The cells along the last axis whose places have one residue by the stride.

    Attributes:
        index: the residue.
        first: the place of the first cell, in strides.
        step: from one cell to the next, in strides.
        taps: [kernel height, cells, places * C], weights repeated along the row.
    """

    index: int
    first: int
    step: int
    taps: Array


class DepthwiseWeights:
    """Weights [C, cells] and biases [C, 1], repeated for stretches of several places.

    Attributes:
        dtype: the type in which every sum is exact.
        subtracted: whether x holds code - zero, and not raw codes.
        height: the kernel's height.
        places: places of a row in a stretch.
        residues: the cells by their residue.
        bias: [places * C].
    """

    def __init__(
        self, w: Array, bias: Array | None, op: Conv, width: int, codes: CodeRange
    ) -> None:
        channels = len(w)
        given = np.zeros(channels, np.int64) if bias is None else bias[:, 0]
        bound = _bound(w, given, *codes.distances())
        self.subtracted = codes.zero != 0
        if codes.zero is not None:
            shifted = given - codes.zero * w.sum(axis=1)
            raw = _bound(w, shifted, *codes.raw())
            if codes.zero == 0 or raw < FLOAT32_EXACT:
                self.subtracted, bound, given = False, raw, shifted
        self.dtype = exact_dtype(bound)
        self.places = max(1, _STRETCH // channels)
        self.bias = np.tile(given.astype(self.dtype), self.places)
        # [kh, kw, C]; a convolution over one axis has kernels of height 1.
        taps = w.T.astype(self.dtype).reshape(-1, width, channels)
        self.height = len(taps)
        self.residues = tuple(self._residues(taps, op.strides[-1], op.dilations[-1]))

    def _residues(self, taps: Array, stride: int, dilation: int) -> Iterator[_Residue]:
        offsets = np.arange(taps.shape[1]) * dilation
        for index in sorted(set((offsets % stride).tolist())):
            cells = np.flatnonzero(offsets % stride == index)
            at = offsets[cells] // stride
            step = int(at[1] - at[0]) if len(at) > 1 else 0
            repeated = np.tile(taps[:, cells], (1, 1, self.places))
            yield _Residue(index, int(at[0]), step, np.ascontiguousarray(repeated))


def _bound(w: Array, bias: Array, low: int, high: int) -> int:
    """The largest |sum| of any of the products of a channel and its bias."""
    up = np.maximum(w * low, w * high).sum(axis=1) + np.maximum(bias, 0)
    down = np.minimum(w * low, w * high).sum(axis=1) + np.minimum(bias, 0)
    return int(np.maximum(up, -down).max(initial=0))


def depthwise_sums(
    weights: DepthwiseWeights, op: Conv, x: Array, x_zero: int, counts: Sequence[int], store: Store
) -> None:
    """Give the sums of blocks of rows to `store(place, sums [rows, columns, C])`.

    Args:
        weights: see there.
        op: over one or two spatial axes.
        x: codes [N, *spatial, C] with their padding.
        x_zero: the zero point of `x`.
        counts: the sizes of the spatial axes of the result.
        store: takes the place of a block among images and rows, and its sums, which it may change.
    """
    flat = op.spatial == 1
    images = x[:, None] if flat else x
    height, width = (1, *counts) if flat else counts
    stride, dilation = (1, 1) if flat else (op.strides[0], op.dilations[0])
    count = max(1, _BLOCK_ELEMENTS // max(1, width * x.shape[-1]))
    for image in range(len(x)):
        for row in range(0, height, count):
            rows = min(count, height - row)
            first = row * stride
            last = first + (rows - 1) * stride + (weights.height - 1) * dilation + 1
            block = images[image, first:last]
            sums = _block(weights, op, block, x_zero, (rows, width), (stride, dilation))
            store(image if flat else (image, slice(row, row + rows)), sums)


def _block(
    weights: DepthwiseWeights,
    op: Conv,
    x: Array,
    x_zero: int,
    counts: tuple[int, int],
    steps: tuple[int, int],
) -> Array:
    """Sums [rows, columns, C] of codes [rows', columns', C]."""
    (rows, width), channels = counts, x.shape[-1]
    total: Array | None = None
    for residue in weights.residues:
        plane = x[:, residue.index :: op.strides[-1]].astype(weights.dtype, order="C")
        if weights.subtracted:
            plane -= plane.dtype.type(x_zero)
        sums = np.empty((rows, width * channels), weights.dtype)
        for start in range(0, width, weights.places):
            size = min(weights.places, width - start) * channels
            stretch = slice(start * channels, start * channels + size)
            view = _taps(plane, residue, start, (rows, size), steps)
            np.einsum("hijx,ijx->hx", view, residue.taps[..., :size], out=sums[:, stretch])
            if total is None:
                sums[:, stretch] += weights.bias[:size]
        total = sums if total is None else np.add(total, sums, out=total)
    assert total is not None
    return total.reshape(rows, width, channels)


def _taps(
    plane: Array, residue: _Residue, start: int, size: tuple[int, int], steps: tuple[int, int]
) -> Array:
    """A view [rows, kernel height, cells, places * C] of a plane from a place of its rows on."""
    row, place, item = plane.strides
    shape = (size[0], *residue.taps.shape[:2], size[1])
    strides = (row * steps[0], row * steps[1], place * residue.step, item)
    return as_strided(plane[:, start + residue.first :], shape, strides, writeable=False)
