"""Where the cells of a resized axis come from, and with which weights.

Source: onnxruntime's Resize on the CPU, whose coordinates are float32, and ONNX Resize-19.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from intonnx.ir.ops.resize import Extent, Resampling, Resize
from intonnx.ir.quantization import quantize_array
from intonnx.ir.types import Array

_HALF = np.float32(0.5)


class Taps(NamedTuple):
    """The cells that make up one axis of the result.

    Attributes:
        cells: int [taps, after], the cells of `x`.
        weights: float64 [taps, after], what each counts.
        outside: bool [after], which cells of the result lie outside `x`.
    """

    cells: Array
    weights: Array
    outside: Array


def cheapest_first(growth: Sequence[float]) -> list[int]:
    """The order of the axes: what grows least comes first, and leaves the others less to do."""
    return [int(index) for index in np.argsort(growth, kind="stable")]


def weighted(
    value: Array, axis: int, step: Taps, one: float, finish: Callable[[Array], Array]
) -> Array:
    """The weighted sum of cells along one axis.

    Args:
        value: of any number type, that of the weights.
        axis: which axis is resized.
        step: its cells and weights, these in units of `one`.
        one: the weight that leaves a cell as it is.
        finish: what a sum of products is put through; it is not called where every weight is
            `one`, and cells are copied.
    """
    cells, weights, _ = step
    whole = bool(np.all(weights[0] == one)) and not np.any(weights[1:])
    if whole and np.array_equal(cells[0], np.arange(value.shape[axis])):
        return value
    shape = [1] * value.ndim
    shape[axis] = -1
    total: Array = value.take(cells[0], axis)
    if whole:
        return total
    total *= weights[0].reshape(shape)
    for cell, weight in zip(cells[1:], weights[1:], strict=True):
        more = value.take(cell, axis)
        more *= weight.reshape(shape)
        total += more
    return finish(total)


def fill_outside(op: Resize, result: Array, outside: Sequence[Array]) -> None:
    """Put the code of the extrapolation value where the result lies outside `x`, axis by axis."""
    for axis, places in zip(op.axes, outside, strict=True):
        if places.any():
            fill = quantize_array(np.asarray(op.extrapolation, np.float32), op.out)
            place: tuple[Any, ...] = (*[slice(None)] * axis, places)
            result[place] = fill


def nearest_cells(op: Resampling, extent: Extent) -> Array:
    """The cell of `x` that is nearest to each cell of an axis of the result."""
    return _nearest(op, extent, coordinates(op, extent, 0))


def taps(op: Resize, extent: Extent, index: int) -> Taps:
    """Cells and weights of the axis at this index of `op.axes`."""
    position, last = coordinates(op, extent, index), extent.before - 1
    outside = np.zeros(position.shape, bool)
    if op.region is not None:
        outside = (position < 0) | (position > last)
    if op.mode == "nearest":
        cells = _nearest(op, extent, position)[None]
        return Taps(cells, np.ones(cells.shape), outside)
    if op.mode == "linear":
        return _linear(position, last, outside)
    return _cubic(op, position, last, outside)


def coordinates(op: Resampling, extent: Extent, index: int) -> Array:
    """The place in `x` of each cell of the axis at this index of `op.axes`: float32."""
    x = np.arange(extent.after, dtype=np.float32)
    before, after, scale = np.float32(extent.before), np.float32(extent.after), extent.scale
    if scale == 1 and op.coordinates != "tf_crop_and_resize":
        return x
    match op.coordinates:
        case "asymmetric":
            return x / scale
        case "tf_half_pixel_for_nn":
            return (x + _HALF) / scale
        case "align_corners":
            return x * (before - 1) / (after - 1) if after > 1 else np.zeros_like(x)
        case "half_pixel_symmetric":
            adjustment = after / (scale * before)
            offset = before / 2 * (1 - adjustment)
            return offset + (x + _HALF) / scale - _HALF
        case "tf_crop_and_resize":
            return _cropped(op, x, index, before, after)
        case "pytorch_half_pixel" if after <= 1:
            return np.zeros_like(x)
        case _:
            return (x + _HALF) / scale - _HALF


def _cropped(op: Resampling, x: Array, index: int, before: np.float32, after: np.float32) -> Array:
    assert isinstance(op, Resize)
    assert op.region is not None
    start = np.float32(op.region[index])
    end = np.float32(op.region[len(op.axes) + index])
    if after > 1:
        return start * (before - 1) + x * (end - start) * (before - 1) / (after - 1)
    return np.full_like(x, 0.5 * float(start + end) * float(before - 1))


def _nearest(op: Resampling, extent: Extent, position: Array) -> Array:
    below = np.floor(position)
    match op.nearest_mode:
        case "round_prefer_floor":
            cells = below + (position - below > _HALF)
        case "round_prefer_ceil":
            cells = below + (position - below >= _HALF)
        case "ceil":
            cells = np.ceil(position)
        case "simple" if extent.scale < 1:
            cells = np.ceil(position)
        case _:
            cells = below
    found: Array = np.clip(cells, 0, max(0, extent.before - 1)).astype(np.intp)
    return found


def _linear(position: Array, last: int, outside: Array) -> Taps:
    position = np.clip(position, 0, max(0, last))
    first = position.astype(np.intp)
    second = np.minimum(first + 1, max(0, last))
    step = (position - first).astype(np.float64)
    # At the border both are one cell, whatever the weights.
    return Taps(np.stack([first, second]), np.stack([1 - step, step]), outside)


def _cubic(op: Resize, position: Array, last: int, outside: Array) -> Taps:
    below = np.floor(position)
    s, a = (position - below).astype(np.float64), op.cubic_a
    cells = below.astype(np.intp) + np.arange(-1, 3)[:, None]
    distances = np.stack([1 + s, s, 1 - s, 2 - s])
    near = ((a + 2) * distances - (a + 3)) * distances * distances + 1
    far = ((a * distances - 5 * a) * distances + 8 * a) * distances - 4 * a
    weights = np.where(distances <= 1, near, far)
    if op.exclude_outside:
        weights = np.where((cells < 0) | (cells > last), 0.0, weights)
        weights = weights / weights.sum(axis=0)
    return Taps(np.clip(cells, 0, max(0, last)), weights, outside)
