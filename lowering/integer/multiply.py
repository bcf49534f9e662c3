"""Products element by element: a table of every pair of 8-bit codes, else literal arithmetic."""

from __future__ import annotations

import numpy as np

from intonnx.ir.ops.multiply import Multiply
from intonnx.lowering.binary import qlinear_multiply_fits, qlinear_multiply_table

from ._binary import literal_kernel, shared_pair_kernel
from ._fixed_binary import fixed_kernel, product
from .kernel import Context, Kernel, kernels


@kernels.register(Multiply)
def multiply(op: Multiply, context: Context) -> Kernel:
    """QLinearMul where it exists and is right."""
    if context.numerics == "fixed":
        return fixed_kernel(product, op.out, context)
    a, b = context.operand(0), context.operand(1)
    if context.numerics == "qlinear" and qlinear_multiply_fits(a, b, op.out):
        arguments = (a.params, b.params, op.out)
        return shared_pair_kernel(qlinear_multiply_table, arguments, context)
    return literal_kernel(np.multiply, op.out, context)
