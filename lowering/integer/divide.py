"""Quotients: tables of every pair of 8-bit codes, else literal arithmetic."""

from __future__ import annotations

import numpy as np

from intonnx.ir.ops.divide import Divide

from ._binary import literal_kernel
from .kernel import Context, Kernel, kernels


@kernels.register(Divide)
def divide(op: Divide, context: Context) -> Kernel:
    """Literal arithmetic: no QLinear operator exists."""
    return literal_kernel(np.divide, op.out, context)
