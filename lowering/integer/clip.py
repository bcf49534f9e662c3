"""Limit codes to a range."""

from __future__ import annotations

import numpy as np

from intonnx.ir.ops.clip import Clip

from .kernel import Context, Kernel, kernels


@kernels.register(Clip)
def clip(op: Clip, context: Context) -> Kernel:
    """A minimum and a maximum on integers."""
    dtype = context.operand(0).dtype.numpy
    low, high = dtype.type(op.low), dtype.type(op.high)
    return lambda operands: (np.clip(operands[0], low, high),)
