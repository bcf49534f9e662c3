"""Products of rows of codes and packed weights, finished block by block."""

from __future__ import annotations

from typing import Any

import numpy as np

from intonnx.ir.types import Array

from .epilogue import Epilogue
from .packed import PackedWeights


def multiply_rows(
    weights: PackedWeights,
    x: Array,
    x_zero: int,
    out: Array,
    after: Epilogue,
    dtype: np.dtype[Any],
) -> None:
    """Write the results of the epilogue to `out` [M, O] for codes [M, K]; there is one group.

    `dtype` is the integer type that holds every sum. Rows of codes are the columns of the product:
    nothing is gathered.
    """
    count = min(weights.rows, len(x))
    columns, sums = weights.columns(count), weights.sums(count)
    for start in range(0, len(x), count):
        rows = x[start : start + count]
        block, result = columns[:, : len(rows)], sums[:, : len(rows)]
        block[0, :, :-1] = rows
        weights.multiply(block, result, x_zero)
        after.apply(result[0], out[start : start + count], dtype)
