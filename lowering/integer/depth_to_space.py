"""DepthToSpace and SpaceToDepth: one copy, in the memory layout of the operand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from intonnx.ir.ops.depth_to_space import DepthToSpace, SpaceToDepth
from intonnx.ir.types import Array

from .kernel import Context, Kernel, kernels


@kernels.register(DepthToSpace)
def depth_to_space(op: DepthToSpace, context: Context) -> Kernel:
    """Axes [N, C, H, b, W, b] in between, whichever of C and the two b are split off first."""
    b = op.blocksize

    def run(operands: Sequence[Any]) -> tuple[Array, ...]:
        x: Array = operands[0]
        n, c, h, w = x.shape
        if op.mode == "DCR":
            split = x.reshape(n, b, b, c // (b * b), h, w).transpose(0, 3, 4, 1, 5, 2)
        else:
            split = x.reshape(n, c // (b * b), b, b, h, w).transpose(0, 1, 4, 2, 5, 3)
        if not _channels_last(x):
            return (split.reshape(n, c // (b * b), h * b, w * b),)
        last = split.transpose(0, 2, 3, 4, 5, 1).reshape(n, h * b, w * b, c // (b * b))
        return (last.transpose(0, 3, 1, 2),)

    return run


@kernels.register(SpaceToDepth)
def space_to_depth(op: SpaceToDepth, context: Context) -> Kernel:
    """Axes [N, b, b, C, H, W] in between."""
    b = op.blocksize

    def run(operands: Sequence[Any]) -> tuple[Array, ...]:
        x: Array = operands[0]
        n, c, h, w = x.shape
        split = x.reshape(n, c, h // b, b, w // b, b).transpose(0, 3, 5, 1, 2, 4)
        if not _channels_last(x):
            return (split.reshape(n, b * b * c, h // b, w // b),)
        last = split.transpose(0, 4, 5, 1, 2, 3).reshape(n, h // b, w // b, b * b * c)
        return (last.transpose(0, 3, 1, 2),)

    return run


def _channels_last(x: Array) -> bool:
    return bool(np.argmin(x.strides) == 1)
