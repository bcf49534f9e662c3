"""ScatterND and ScatterElements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from intonnx.ir.ops.scatter_nd import ScatterElements, ScatterNd
from intonnx.ir.types import Array

from ._selection import prepared
from .gather_elements import reached
from .kernel import Context, Kernel, kernels


@kernels.register(ScatterNd)
def scatter_nd(op: ScatterNd, context: Context) -> Kernel:
    """Negative indices count from the end; numpy raises IndexError for one out of range."""
    codes = prepared(op.out, (0, 2), context)

    def run(operands: Sequence[Any]) -> tuple[Array, ...]:
        data, updates = codes(operands)
        result = data.copy()
        result[tuple(np.moveaxis(operands[1], -1, 0))] = updates
        return (result,)

    return run


@kernels.register(ScatterElements)
def scatter_elements(op: ScatterElements, context: Context) -> Kernel:
    """Negative indices count from the end; numpy raises IndexError for one out of range."""
    codes = prepared(op.out, (0, 2), context)

    def run(operands: Sequence[Any]) -> tuple[Array, ...]:
        data, updates = codes(operands)
        result = data.copy()
        indices = operands[1]
        np.put_along_axis(reached(result, indices, op.axis), indices, updates, op.axis)
        return (result,)

    return run
