"""Matrix products by blocks: exact sums of blocks, added up in float32."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from intonnx.ir.ops.blocked_dense import BlockedDense
from intonnx.ir.quantization import expand, quantize_array
from intonnx.ir.types import Array, TensorType

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

    def run(operands: Sequence[Any]) -> tuple[Array, ...]:
        x, matrix = operands
        product, dtype = ready or exact_product(_blocks(matrix, b, size), largest)
        rows, count = math.prod(x.shape[:-1]), scales.shape[0]
        centred = np.zeros((rows, count * size), dtype)
        np.subtract(x.reshape(rows, -1), a.scalar_zero_point, out=centred[:, : x.shape[-1]],
                    casting="unsafe", dtype=np.int64)  # fmt: skip
        sums = product(centred.reshape(rows, count, size).transpose(1, 0, 2))
        real = sums.astype(np.float32)
        real *= scales
        total = np.zeros(real.shape[1:], np.float32)
        for block in real:
            total += block
        return (quantize_array(total.reshape(*x.shape[:-1], -1), op.out),)

    return run


def _blocks(matrix: Array, kind: TensorType, size: int) -> Array:
    """Whole numbers [blocks, size, N]; what the last block lacks is 0."""
    rows, columns = matrix.shape
    zeros = expand(kind.params, matrix.shape)[1]
    count = kind.params.scale.shape[0]
    blocks = np.zeros((count * size, columns), np.int64)
    blocks[:rows] = matrix.astype(np.int64) - zeros
    return blocks.reshape(count, size, columns)
