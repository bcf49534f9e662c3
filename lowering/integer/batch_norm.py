"""Batch normalization: a table for each channel, or one float32 product and sum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from intonnx.ir.ops.batch_norm import BatchNorm
from intonnx.ir.types import Array
from intonnx.lowering.normalization import channel_tables, normalized

from ._fixed_batch_norm import fixed_batch_norm
from .kernel import Context, Kernel, kernels


@kernels.register(BatchNorm)
def batch_norm(op: BatchNorm, context: Context) -> Kernel:
    """Tables are made at compile time when the statistics are constant."""
    x = context.operand(0)
    given = [context.constant(index) for index in range(1, 5)]
    statistics = [array for array in given if array is not None]
    if context.numerics == "fixed":
        compute = fixed_batch_norm(op, x.params, given)
        return lambda operands: (compute(operands[0]),)
    if x.dtype.bits > 8 or len(statistics) < 4:
        return lambda operands: (normalized(op, x.params, operands[0], operands[1:]),)
    tables = channel_tables(op, x.params, statistics)
    flat, entries = tables.reshape(-1), tables.shape[1]
    rows = np.arange(len(tables), dtype=np.int32) * entries

    def run(operands: Sequence[Any]) -> tuple[Array, ...]:
        codes: Array = operands[0]
        positions = codes.view(np.uint8).astype(np.int32, order="K")
        positions += rows.reshape(-1, *[1] * (codes.ndim - 2))
        return (flat[positions],)

    return run
