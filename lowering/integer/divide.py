"""Quotients: tables of every pair of 8-bit codes, else literal arithmetic."""

from __future__ import annotations

import numpy as np

from intonnx.ir.ops.divide import Divide

from ._binary import literal_kernel
from ._fixed_binary import fixed_kernel, quotient
from .kernel import Context, Kernel, kernels


@kernels.register(Divide)
def divide(op: Divide, context: Context) -> Kernel:
    """Literal arithmetic: no QLinear operator exists."""
    if context.numerics == "fixed":
        return fixed_kernel(quotient, op.out, context)
    return literal_kernel(np.divide, op.out, context)
