"""Max pools: a maximum along each spatial axis in turn, in the layout of the input."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from intonnx.ir.ops.max_pool import MaxPool, MaxPool1d, MaxPool2d, MaxPool3d
from intonnx.ir.types import Array

from ._pool import Windows
from .kernel import Context, Kernel, kernels


@kernels.register(MaxPool1d, MaxPool2d, MaxPool3d)
def max_pool(op: MaxPool, context: Context) -> Kernel:
    """Maxima of maxima: k_h + k_w cells a result in place of k_h * k_w."""
    if op.indices != "none":
        return _with_indices(op)
    lowest = context.operand(0).dtype.low

    def run(operands: Sequence[Any]) -> tuple[Array, ...]:
        x: Array = operands[0]
        windows = Windows(op, x.shape[2:])
        result = windows.extended(x, lowest)
        for axis in range(op.spatial):
            result = _largest(windows, result, axis)
        return (result,)

    return run


def _with_indices(op: MaxPool) -> Kernel:
    """Cell by cell: a larger code replaces code and index, so the first of equals stays."""

    def run(operands: Sequence[Any]) -> tuple[Array, ...]:
        x: Array = operands[0]
        batch, channels, *sizes = x.shape
        windows, lowest = Windows(op, sizes), np.iinfo(x.dtype).min - 1
        order = range(op.spatial) if op.indices == "rows" else range(op.spatial)[::-1]
        places = np.arange(math.prod(sizes)).reshape([sizes[axis] for axis in order])
        places = places.transpose(np.argsort(order))[None, None]
        # What is around the data is less than every code.
        cells = windows.cells(windows.extended(x.astype(np.int64), lowest))
        shape = (batch, channels, *windows.counts)
        largest, found = np.full(shape, lowest, np.int64), np.zeros(shape, np.int64)
        for cell, place in zip(cells, windows.cells(windows.extended(places, 0)), strict=True):
            above = cell > largest
            np.copyto(largest, cell, where=above)
            np.copyto(found, place, where=above)
        first = np.arange(batch * channels).reshape(batch, channels, *[1] * op.spatial)
        return largest.astype(x.dtype), found + first * math.prod(sizes)

    return run


def _largest(windows: Windows, x: Array, axis: int) -> Array:
    taps = windows.taps(x, axis)
    result = next(taps)
    fresh = False
    for tap in taps:
        result = np.maximum(result, tap, out=result if fresh else None)
        fresh = True
    return result
