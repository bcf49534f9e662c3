"""Codes with other parameters in the type: the same array, limited to a narrower range."""

from __future__ import annotations

import numpy as np

from intonnx.ir.ops.storage_cast import StorageCast

from .kernel import Context, Kernel, kernels


@kernels.register(StorageCast)
def storage_cast(op: StorageCast, context: Context) -> Kernel:
    """Nothing to do at run time, unless codes can be out of range."""
    limits = op.limits(context.operand(0))
    if limits is None:
        return lambda operands: (operands[0],)
    low, high = (context.operand(0).dtype.numpy.type(limit) for limit in limits)
    return lambda operands: (np.clip(operands[0], low, high),)
