"""Max pools: a maximum along each spatial axis in turn, in the layout of the input."""

from __future__ import annotations

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
    lowest = context.operand(0).dtype.low

    def run(operands: Sequence[Any]) -> tuple[Array, ...]:
        x: Array = operands[0]
        windows = Windows(op, x.shape[2:])
        result = windows.extended(x, lowest)
        for axis in range(op.spatial):
            result = _largest(windows, result, axis)
        return (result,)

    return run


def _largest(windows: Windows, x: Array, axis: int) -> Array:
    taps = windows.taps(x, axis)
    result = next(taps)
    fresh = False
    for tap in taps:
        result = np.maximum(result, tap, out=result if fresh else None)
        fresh = True
    return result
