"""Sampling: one gather of channels-last rows for each cell of the window."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from intonnx.ir.ops.grid_sample import GridSample
from intonnx.ir.quantization import dequantize_array
from intonnx.ir.types import Array, QuantParams
from intonnx.lowering.requantize import round_to_codes

from .kernel import Context, Kernel, kernels
from .quantize import requantize_function

_FARTHEST = np.float32(1 << 24)
"""Places beyond are outside by any number of cells: this keeps them, and NaN, whole numbers."""
_CUBIC = -0.75


@kernels.register(GridSample)
def grid_sample(op: GridSample, context: Context) -> Kernel:
    """The same for all numerics."""
    x, grid = context.operand(0).params, context.operand(1).quant
    to_result = requantize_function(x, op.out, 0, context)

    def run(operands: Sequence[Any]) -> tuple[Array, ...]:
        codes: Array = operands[0]
        places: Array = operands[1] if grid is None else dequantize_array(operands[1], grid)
        sampler = _Sampler(op, codes, places)
        if op.mode == "nearest":
            result = to_result(sampler.nearest(x.scalar_zero_point))
        else:
            result = _quantized(sampler.mean(x.scalar_zero_point), x, op.out)
        shape = (codes.shape[0], *places.shape[1:-1], codes.shape[1])
        return (np.moveaxis(result.reshape(shape), -1, 1),)

    return run


def _quantized(mean: Array, x: QuantParams, out: QuantParams) -> Array:
    mean *= float(x.scalar_scale) / float(out.scalar_scale)
    return round_to_codes(mean, out)


class _Sampler:
    """Rows of channels [cells, C] of a batch, and where each sample takes them from."""

    def __init__(self, op: GridSample, codes: Array, places: Array) -> None:
        self._op = op
        self._sizes = codes.shape[2:]
        self._rows = np.moveaxis(codes, 1, -1).reshape(-1, codes.shape[1])
        batch = codes.shape[0]
        samples = math.prod(places.shape[1:-1])
        images = np.arange(batch, dtype=np.int64) * math.prod(self._sizes)
        self._images = np.repeat(images, samples)
        flat = places.reshape(batch * samples, -1)
        # A place names the last axis first.
        self._places = [
            _position(flat[:, -1 - axis], size, align_corners=op.align_corners)
            for axis, size in enumerate(self._sizes)
        ]

    def nearest(self, zero: int) -> Array:
        """Codes [samples, C] of the nearest cells."""
        cells, inside = zip(
            *(self._cell(np.rint(place), axis) for axis, place in enumerate(self._places)),
            strict=True,
        )
        found = self._rows[self._index(cells)]
        found[~np.logical_and.reduce(inside)] = zero
        return found

    def mean(self, zero: int) -> Array:
        """Weighted means [samples, C] of codes less their zero point, in float64."""
        windows = [list(self._window(axis)) for axis in range(len(self._sizes))]
        total = np.zeros((self._images.size, self._rows.shape[1]))
        for taps in product(*windows):
            weight = math.prod(weight for _, weight in taps)
            values = self._rows[self._index([cell for cell, _ in taps])].astype(np.float64)
            values -= zero
            values *= np.asarray(weight)[:, None]
            total += values
        return total

    def _window(self, axis: int) -> Sequence[tuple[Array, Array]]:
        """Cells and weights along an axis; outside of zeros a weight is 0."""
        place = self._places[axis]
        below = np.floor(place)
        step = (place - below).astype(np.float64)
        if self._op.mode == "linear":
            weights = [(0, 1 - step), (1, step)]
        else:
            weights = list(enumerate(_cubic_weights(step), -1))
        window: list[tuple[Array, Array]] = []
        for offset, weight in weights:
            cell, inside = self._cell(below + np.float32(offset), axis)
            window.append((cell, weight * inside))
        return window

    def _cell(self, place: Array, axis: int) -> tuple[Array, Array]:
        """The cell at a whole place, by the padding, and whether it counts."""
        last = self._sizes[axis] - 1
        inside = (place >= 0) & (place <= last)
        if self._op.padding == "zeros":
            return np.clip(place, 0, last).astype(np.int64), inside
        if self._op.padding == "reflection":
            place = _reflected(place, self._sizes[axis], align_corners=self._op.align_corners)
        return np.clip(place, 0, last).astype(np.int64), np.ones_like(inside)

    def _index(self, cells: Sequence[Array]) -> Array:
        """The rows of cells that are given axis by axis."""
        row: Array = np.zeros_like(self._images)
        for cell, size in zip(cells, self._sizes, strict=True):
            row = row * size + cell
        return row + self._images


def _position(place: Array, size: int, *, align_corners: bool) -> Array:
    """float32 cells from -1 to 1: onnxruntime's order of operations."""
    one, two, length = np.float32(1), np.float32(2), np.float32(size)
    with np.errstate(over="ignore", invalid="ignore"):
        if align_corners:
            found = (place + one) / two * (length - one)
        else:
            found = ((place + one) * length - one) / two
    # fmax prefers the number over NaN.
    near: Array = np.fmin(np.fmax(found, -_FARTHEST), _FARTHEST)
    return near


def _reflected(place: Array, size: int, *, align_corners: bool) -> Array:
    """The place inside, mirrored at the middles or at the edges of the cells at the border."""
    half = np.float32(0 if align_corners else 0.5)
    low, high = -half, np.float32(size - 1) + half
    length = high - low
    beyond = np.where(place < low, low - place, place - high)
    if length == 0:
        return np.full_like(place, low)
    times = np.trunc(beyond / length)
    rest = beyond - times * length
    from_low = (place < low) == (times % 2 == 0)
    mirrored = np.where(from_low, low + rest, high - rest)
    return np.where((place < low) | (place > high), mirrored, place)


def _cubic_weights(s: Array) -> list[Array]:
    a = _CUBIC
    near = [((a + 2) * d - (a + 3)) * d * d + 1 for d in (s, 1 - s)]
    far = [((a * d - 5 * a) * d + 8 * a) * d - 4 * a for d in (s + 1, 2 - s)]
    return [far[0], near[0], near[1], far[1]]
