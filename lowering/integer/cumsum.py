"""Running sums of whole numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from intonnx.ir.ops.cumsum import CumSum
from intonnx.ir.types import Array
from intonnx.lowering.reductions import INT32_LIMIT, largest_code

from .kernel import Context, Kernel, kernels


@kernels.register(CumSum)
def cumsum(op: CumSum, context: Context) -> Kernel:
    """int32 where no sum can leave it for the sizes that come, else int64."""
    params = context.operand(0).params

    def run(operands: Sequence[Any]) -> tuple[Array, ...]:
        codes: Array = np.flip(operands[0], op.axis) if op.reverse else operands[0]
        fits = codes.shape[op.axis] * largest_code(params) < INT32_LIMIT
        dtype = np.dtype(np.int32 if fits else np.int64)
        values = codes.astype(dtype)
        values -= dtype.type(params.scalar_zero_point)
        sums = np.cumsum(values, axis=op.axis, dtype=dtype)
        if op.exclusive:
            sums -= values
        return (np.flip(sums, op.axis) if op.reverse else sums,)

    return run
