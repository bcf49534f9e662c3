"""Limit codes to a range."""

from __future__ import annotations

import numpy as np

from intonnx.ir.ops.clip import Clip

from .kernel import Context, Kernel, kernels


@kernels.register(Clip, elementwise=True)
def clip(op: Clip, context: Context) -> Kernel:
    """A minimum and a maximum on integers."""
    kind = context.operand(0).dtype
    # Sums may be wider than their type: its ends are no limits to them.
    low = None if op.low == kind.low else kind.numpy.type(op.low)
    high = None if op.high == kind.high else kind.numpy.type(op.high)
    if low is None and high is None:
        return lambda operands: (operands[0],)
    return lambda operands: (np.clip(operands[0], low, high),)
