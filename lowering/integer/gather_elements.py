"""GatherElements and GatherND."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from intonnx.ir.ops.gather_elements import GatherElements, GatherNd
from intonnx.ir.types import Array

from .kernel import Context, Kernel, kernels


@kernels.register(GatherElements)
def gather_elements(op: GatherElements, context: Context) -> Kernel:
    """Negative indices count from the end; numpy raises IndexError for one out of range."""

    def run(operands: Sequence[Any]) -> tuple[Array, ...]:
        x, indices = operands
        return (np.take_along_axis(reached(x, indices, op.axis), indices, op.axis),)

    return run


def reached(x: Array, indices: Array, axis: int) -> Array:
    """The part of `x` that indices along an axis can reach, a view: as long as they are."""
    sizes = [slice(size) for size in indices.shape]
    sizes[axis] = slice(None)
    return x[tuple(sizes)]


@kernels.register(GatherNd)
def gather_nd(op: GatherNd, context: Context) -> Kernel:
    """Coordinates of the batch axes are counted, those of the next axes are given."""

    def run(operands: Sequence[Any]) -> tuple[Array, ...]:
        x, indices = operands
        places = indices.shape[:-1]
        batch = np.indices(places[: op.batch_dims]).reshape(op.batch_dims, *places[: op.batch_dims])
        rest = (1,) * (len(places) - op.batch_dims)
        counted = [axis.reshape(*axis.shape, *rest) for axis in batch]
        return (np.asarray(x[(*counted, *np.moveaxis(indices, -1, 0))]),)

    return run
