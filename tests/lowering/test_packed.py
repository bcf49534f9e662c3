"""Packed sums against Python's whole numbers, where the bounds change the type or the split."""

from __future__ import annotations

import numpy as np
import pytest

from intonnx.lowering.integer.packed import CodeRange, PackedWeights


@pytest.mark.parametrize("rounded", [False, True])
@pytest.mark.parametrize(
    ("k", "largest", "bias"),
    [
        (9, 127, 1000),
        (600, 127, 1000),
        (1500, 127, 1 << 20),
        (9, 127, 1 << 26),
        (3, 1 << 26, 5),
        (4, 1 << 45, 5),
    ],
)
@pytest.mark.parametrize("zero", [0, 114, 255, None])
def test_sums_at_the_bounds(
    k: int, largest: int, bias: int, zero: int | None, rounded: bool
) -> None:
    """Rows that reach the largest and the least sum of a column, and drawn ones."""
    rng = np.random.default_rng(k)
    w = rng.integers(-largest, largest + 1, (1, k, 3))
    w[0, :, 0] = largest
    b = np.array([[bias, -bias, 7]])
    weights = PackedWeights(w, b, CodeRange(0, 255, zero), rounded=rounded)
    at_run = 3 if zero is None else zero
    x = rng.integers(0, 256, (5, k))
    x[0], x[1] = 255, np.where(w[0, :, 1] > 0, 0, 255)
    columns, sums = weights.columns(5), weights.sums(5)
    columns[0, :, :-1] = x
    weights.multiply(columns, sums, at_run)
    wanted = (x - at_run).astype(object) @ w[0].astype(object) + b[0].astype(object)
    assert max(abs(value) for value in wanted.ravel()) <= weights.bound
    exact = wanted.astype(np.int64)
    if rounded and sums.dtype == np.float32:
        np.testing.assert_array_equal(sums[0], exact.astype(np.float32))
    else:
        np.testing.assert_array_equal(sums[0].astype(np.int64), exact)
