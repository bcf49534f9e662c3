"""Transpose: a view."""

from __future__ import annotations

from intonnx.ir.ops.transpose import Transpose

from .kernel import Context, Kernel, kernels


@kernels.register(Transpose)
def transpose(op: Transpose, context: Context) -> Kernel:
    """Permuted strides; nothing is copied."""
    return lambda operands: (operands[0].transpose(op.perm),)
