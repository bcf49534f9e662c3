"""Which cells a place between cells is sampled from, axis by axis, and with which weights.

Places are float32 and every step is rounded to it, in onnxruntime's order of operations.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from intonnx.ir.ops.grid_sample import GridSample
from intonnx.ir.types import Array

_FARTHEST = np.float32(1 << 24)
"""Places beyond are outside by any number of cells: this keeps them, and NaN, whole numbers."""
_CUBIC = -0.75


def position(place: Array, size: int, *, align_corners: bool) -> Array:
    """float32 cells from places between -1 and 1."""
    one, two, length = np.float32(1), np.float32(2), np.float32(size)
    with np.errstate(over="ignore", invalid="ignore"):
        if align_corners:
            found = (place + one) / two * (length - one)
        else:
            found = ((place + one) * length - one) / two
    # fmax prefers the number over NaN.
    near: Array = np.fmin(np.fmax(found, -_FARTHEST), _FARTHEST)
    return near


def nearest(op: GridSample, place: Array, size: int) -> tuple[Array, Array]:
    """The nearest cell of an axis, and whether it counts."""
    return _cell(op, np.rint(place), size)


def window(op: GridSample, place: Array, size: int) -> Sequence[tuple[Array, Array]]:
    """Cells and float64 weights along an axis; outside of zeros a weight is 0."""
    below = np.floor(place)
    step = (place - below).astype(np.float64)
    if op.mode == "linear":
        weights = [(0, 1 - step), (1, step)]
    else:
        weights = list(enumerate(_cubic_weights(step), -1))
    found: list[tuple[Array, Array]] = []
    for offset, weight in weights:
        cell, inside = _cell(op, below + np.float32(offset), size)
        found.append((cell, weight * inside))
    return found


def _cell(op: GridSample, place: Array, size: int) -> tuple[Array, Array]:
    """The cell at a whole place, by the padding, and whether it counts."""
    last = size - 1
    inside = (place >= 0) & (place <= last)
    if op.padding == "zeros":
        return np.clip(place, 0, last).astype(np.int64), inside
    if op.padding == "reflection":
        place = _reflected(place, size, align_corners=op.align_corners)
    return np.clip(place, 0, last).astype(np.int64), np.ones_like(inside)


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
