"""Join codes; operands with other parameters go through a table first."""

from __future__ import annotations

import numpy as np

from intonnx.ir.ops.concatenate import Concatenate

from ._selection import prepared
from .kernel import Context, Kernel, kernels


@kernels.register(Concatenate)
def concatenate(op: Concatenate, context: Context) -> Kernel:
    """One table an operand at compile time."""
    parts = prepared(op.out, range(len(context.operands)), context)
    return lambda operands: (np.concatenate(parts(operands), op.axis),)
