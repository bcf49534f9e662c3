"""Parametric rectifiers: tables of every pair of 8-bit codes, else literal arithmetic."""

from __future__ import annotations

from intonnx.ir.float32 import parametric_relu
from intonnx.ir.ops.prelu import Prelu

from ._binary import literal_kernel
from ._fixed_binary import fixed_kernel, rectified
from .kernel import Context, Kernel, kernels


@kernels.register(Prelu)
def prelu(op: Prelu, context: Context) -> Kernel:
    """Literal arithmetic: no QLinear operator exists."""
    if context.numerics == "fixed":
        return fixed_kernel(rectified, op.out, context)
    return literal_kernel(parametric_relu, op.out, context)
