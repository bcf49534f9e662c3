"""Sums and differences: tables of every pair of 8-bit codes, else literal arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from intonnx.ir.ops.add import Add, Subtract
from intonnx.ir.types import Array
from intonnx.lowering.binary import known_swap, qlinear_add_fits, qlinear_add_table, swaps_operands

from ._binary import literal_kernel, shared_pair_kernel
from ._fixed_binary import fixed_kernel, sums
from .kernel import Context, Kernel, kernels


@kernels.register(Add)
def add(op: Add, context: Context) -> Kernel:
    """QLinearAdd where it exists and is right; its last bit depends on how the shapes broadcast."""
    if context.numerics == "fixed":
        return fixed_kernel(sums(1), op.out, context)
    a, b = context.operand(0), context.operand(1)
    if context.numerics != "qlinear" or not qlinear_add_fits(a, b, op.out):
        return literal_kernel(np.add, op.out, context)

    def build(swapped: bool) -> Kernel:
        arguments = (a.params, b.params, op.out, swapped)
        return shared_pair_kernel(qlinear_add_table, arguments, context)

    known = known_swap(a.shape, b.shape)
    if known is not None:
        return build(known)
    either = build(False), build(True)

    def run(operands: Sequence[Any]) -> tuple[Array, ...]:
        return either[swaps_operands(operands[0].shape, operands[1].shape)](operands)

    return run


@kernels.register(Subtract)
def subtract(op: Subtract, context: Context) -> Kernel:
    """Literal arithmetic: no QLinear operator exists."""
    if context.numerics == "fixed":
        return fixed_kernel(sums(-1), op.out, context)
    return literal_kernel(np.subtract, op.out, context)
