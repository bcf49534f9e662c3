"""Reshape, Flatten, Squeeze and Unsqueeze: views where the memory allows it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from intonnx.ir.errors import RunFailure
from intonnx.ir.ops.reshape import Flatten, Reshape, Squeeze, Unsqueeze
from intonnx.ir.types import Array, Dim

from .kernel import Context, Kernel, kernels


@kernels.register(Reshape)
def reshape(op: Reshape, context: Context) -> Kernel:
    """The sizes that the type knows are taken from it, so that an empty batch leaves none open."""
    if op.shape is None:
        return lambda operands: (_reshaped(operands[0], operands[1].tolist(), op.allowzero),)
    known: Sequence[Dim] = context.results[0].shape or ()
    target = [
        size if isinstance(size, int) and given == -1 else given
        for size, given in zip(known, op.shape, strict=True)
    ]
    return lambda operands: (_reshaped(operands[0], target, op.allowzero),)


def _reshaped(x: Array, target: Sequence[int], allowzero: bool) -> Array:
    copies = [axis for axis, size in enumerate(target) if size == 0 and not allowzero]
    if any(axis >= x.ndim for axis in copies) or min(target, default=0) < -1:
        raise RunFailure(f"the shape {list(x.shape)} cannot become {list(target)}")
    shape = [x.shape[axis] if axis in copies else size for axis, size in enumerate(target)]
    return x.reshape(shape)


@kernels.register(Flatten)
def flatten(op: Flatten, context: Context) -> Kernel:
    """Two products of sizes."""

    def run(operands: Sequence[Any]) -> tuple[Array, ...]:
        x: Array = operands[0]
        axis = op.axis + x.ndim if op.axis < 0 else op.axis
        return (x.reshape(math.prod(x.shape[:axis]), math.prod(x.shape[axis:])),)

    return run


@kernels.register(Squeeze)
def squeeze(op: Squeeze, context: Context) -> Kernel:
    """A view without axes."""
    return lambda operands: (operands[0].squeeze(op.axes),)


@kernels.register(Unsqueeze)
def unsqueeze(op: Unsqueeze, context: Context) -> Kernel:
    """A view with more axes."""
    return lambda operands: (np.expand_dims(operands[0], op.axes),)
