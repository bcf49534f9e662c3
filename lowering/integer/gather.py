"""Gather."""

from __future__ import annotations

import numpy as np

from intonnx.ir.ops.gather import Gather

from .kernel import Context, Kernel, kernels


@kernels.register(Gather)
def gather(op: Gather, context: Context) -> Kernel:
    """Negative indices count from the end; numpy raises IndexError for one out of range."""
    return lambda operands: (np.asarray(np.take(operands[0], operands[1], axis=op.axis)),)
