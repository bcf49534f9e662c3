"""Expand and Tile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from intonnx.ir.ops.expand import Expand, Tile
from intonnx.ir.types import Array

from .kernel import Context, Kernel, kernels


@kernels.register(Expand)
def expand(op: Expand, context: Context) -> Kernel:
    """A view that repeats by strides of 0."""

    def run(operands: Sequence[Any]) -> tuple[Array, ...]:
        x: Array = operands[0]
        target = operands[1].tolist() if op.shape is None else op.shape
        # Either side may be the one that is repeated.
        return (np.broadcast_to(x, np.broadcast_shapes(x.shape, tuple(target))),)

    return run


@kernels.register(Tile)
def tile(op: Tile, context: Context) -> Kernel:
    """One copy."""
    return lambda operands: (
        np.tile(operands[0], operands[1].tolist() if op.repeats is None else op.repeats),
    )
