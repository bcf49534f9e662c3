"""Matrix products by blocks: exact sums of blocks, added up in float32."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from intonnx.ir.ops.blocked_dense import BlockedDense
from intonnx.ir.quantization import expand, quantize_array
from intonnx.ir.types import Array, TensorType
from intonnx.lowering import fixed_point
from intonnx.lowering.fixed_point import BITS, rounded_shift
from intonnx.lowering.reductions import largest_code
from intonnx.lowering.requantize import limited

from .exact import exact_product, largest_magnitude
from .kernel import Context, Kernel, kernels


@kernels.register(BlockedDense)
def blocked_dense(op: BlockedDense, context: Context) -> Kernel:
    """One batched product over the blocks; weights are packed at compile time if constant."""
    a, b = context.operand(0).params, context.operand(1)
    size = b.params.block or 1
    scales = (a.scalar_scale * b.params.scale)[:, None, :]
    largest = largest_magnitude(a.qmin, a.qmax, a.scalar_zero_point)
    packed = context.constant(1)
    ready = None if packed is None else exact_product(_blocks(packed, b, size), largest)

    fixed = _FixedSum(op, context, largest) if context.numerics == "fixed" else None

    def run(operands: Sequence[Any]) -> tuple[Array, ...]:
        x, matrix = operands
        product, dtype = ready or exact_product(_blocks(matrix, b, size), largest)
        rows, count = math.prod(x.shape[:-1]), scales.shape[0]
        centred = np.zeros((rows, count * size), dtype)
        np.subtract(x.reshape(rows, -1), a.scalar_zero_point, out=centred[:, : x.shape[-1]],
                    casting="unsafe", dtype=np.int64)  # fmt: skip
        sums = product(centred.reshape(rows, count, size).transpose(1, 0, 2))
        if fixed is not None:
            return (fixed(sums).reshape(*x.shape[:-1], -1),)
        real = sums.astype(np.float32)
        real *= scales
        total = np.zeros(real.shape[1:], np.float32)
        for block in real:
            total += block
        return (quantize_array(total.reshape(*x.shape[:-1], -1), op.out),)

    return run


class _FixedSum:
    """Sums of blocks times multipliers with one shift, added up and rounded once."""

    def __init__(self, op: BlockedDense, context: Context, largest: int) -> None:
        a, b = context.operand(0).params, context.operand(1).params
        ratio = Fraction(float(a.scalar_scale)) / Fraction(float(op.out.scalar_scale))
        factors = fixed_point.fractions(b.scale) * ratio
        # With so many digits in all, the sum of everything stays below 2^61.
        digits = (largest * largest_code(b) * (b.block or 1) * len(factors)).bit_length()
        most = max(factors.flat, default=Fraction(1))
        least = fixed_point.exponent(most) + max(0, digits - 30)
        made = fixed_point.common_multipliers([factors], least)[0]
        self._m, self._total, self._out = made.m, BITS - made.shift, op.out

    def __call__(self, sums: Array) -> Array:
        """Codes [M, N] of sums [blocks, M, N]."""
        total = np.zeros(sums.shape[1:], np.int64)
        for block, m in zip(sums, self._m, strict=True):
            total += block.astype(np.int64) * m
        return limited(rounded_shift(total, self._total), self._out)


def _blocks(matrix: Array, kind: TensorType, size: int) -> Array:
    """Whole numbers [blocks, size, N]; what the last block lacks is 0."""
    rows, columns = matrix.shape
    zeros = expand(kind.params, matrix.shape)[1]
    count = kind.params.scale.shape[0]
    blocks = np.zeros((count * size, columns), np.int64)
    blocks[:rows] = matrix.astype(np.int64) - zeros
    return blocks.reshape(count, size, columns)
