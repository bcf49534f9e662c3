"""The bound that decides between float32, float64 and integers, held against Python integers."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from intonnx.lowering.integer import exact

Array = np.ndarray[Any, np.dtype[Any]]


def big(x: Array, w: Array) -> Array:
    """x @ w in Python integers, which have no limits."""
    return np.asarray(np.matmul(x.astype(object), w.astype(object)))


def check(product: exact.Product, wanted_type: np.dtype[Any], x: Array, w: Array) -> Array:
    found = product(x.astype(wanted_type))
    assert found.dtype in (np.int32, np.int64)
    assert (found.astype(object) == big(x, w)).all()
    return found


def adversarial(k: int, columns: int, x_max: int, w_max: int, seed: int) -> tuple[Array, Array]:
    """Mostly the largest magnitudes, so that sums come as near to the bound as they can."""
    rng = np.random.default_rng(seed)
    x = rng.choice([x_max, x_max, x_max - 1, -x_max, 1], (3, k))
    w = rng.choice([w_max, w_max, w_max - 1, -w_max, 0], (k, columns))
    # One row and one column of only the largest, and odd sums: the last bit must survive.
    x[0], w[:, 0] = x_max, w_max
    x[1], x[1, -1:] = x_max, x_max - 1
    return x, w


@settings(max_examples=60)
@given(
    k=st.sampled_from([1, 2, 3, 257, 258, 259, 516, 517, 1032, 1033, 1500]),
    x_max=st.sampled_from([1, 127, 128, 255, 32768, 65535]),
    w_max=st.sampled_from([1, 7, 128, 255, 65535]),
    seed=st.integers(0, 99),
)
def test_products_are_those_of_python_integers(k: int, x_max: int, w_max: int, seed: int) -> None:
    x, w = adversarial(k, 4, x_max, w_max, seed)
    check(*exact.exact_product(w, x_max), x, w)
    product, wanted = exact.product_of_unknown(k, x_max, w_max)
    check(lambda left: product(left, w.astype(wanted)), wanted, x, w)


@pytest.mark.parametrize(
    ("k", "expected"),
    [(1, np.float32), (258, np.float32), (1032, np.float32), (1033, np.float64)],
)
def test_float32_reaches_258_products_of_extreme_codes_and_four_parts(
    k: int, expected: type[np.floating[Any]]
) -> None:
    # 255 * 255 * 258 = 16,776,450 is below 2^24, one product more is not.
    assert exact.exact_product(np.full((k, 2), 255), 255)[1] == expected
    assert exact.product_of_unknown(k, 255, 255)[1] == expected


def test_the_bound_itself_is_not_below_the_bound() -> None:
    # |x| |w| = 2^24 - 1 is exact in one part; at 2^24 the next odd number would not be.
    for w, x_max, parts in (
        (np.full((1, 1), 4095), 4097, 1),
        (np.full((1, 1), 4096), 4096, None),
        (np.array([[2048], [2048]]), 4096, 2),
    ):
        found = exact._parts(w, x_max)
        assert (None if found is None else len(found)) == parts
        x = np.full((1, len(w)), x_max)
        check(*exact.exact_product(w, x_max), x, w)


def test_parts_cover_the_reduction_once_and_each_is_exact() -> None:
    rng = np.random.default_rng(3)
    for scale in (3, 40, 255):
        w = rng.integers(-scale, scale + 1, (2, 900, 5))
        parts = exact._parts(w, 255)
        if parts is None:
            continue
        covered = np.concatenate([np.arange(900)[part] for part in parts])
        assert covered.tolist() == list(range(900))
        for part in parts:
            assert int(np.abs(w[:, part]).sum(axis=1).max()) * 255 < 2**24


def test_parts_follow_the_weights_not_their_type() -> None:
    # 4000 codes of s8 would need 15 parts if all were 128; these need one.
    w = np.zeros((4000, 3), np.int64)
    w[::8] = 64
    assert exact._parts(w, 255) == [slice(0, 4000)]
    check(*exact.exact_product(w, 255), np.full((2, 4000), -255), w)


def test_one_heavy_column_decides_for_all() -> None:
    w = np.ones((2000, 3), np.int64)
    w[:, 1] = 128
    parts = exact._parts(w, 255)
    assert parts is not None
    assert len(parts) == 4
    x = np.full((2, 2000), 255)
    x[1, ::2] = -254
    check(*exact.exact_product(w, 255), x, w)


def test_sums_beyond_int32_are_int64() -> None:
    k, high = 40_000, 255
    w, x = np.full((k, 1), high), np.full((1, k), high)
    assert check(*exact.exact_product(w, high), x, w).dtype == np.int64
    product, wanted = exact.product_of_unknown(k, high, high)
    assert check(lambda left: product(left, w.astype(wanted)), wanted, x, w).dtype == np.int64


@pytest.mark.parametrize(("extra", "expected"), [(3, np.int32), (4, np.int64)])
def test_the_bias_counts_for_the_integer_type(extra: int, expected: type[np.integer[Any]]) -> None:
    w = np.full((1, 1), 2**31 - 4)
    product, wanted = exact.exact_product(w, 1, extra)
    assert check(product, wanted, np.ones((1, 1), np.int64), w).dtype == expected


def test_products_beyond_float64_are_integers() -> None:
    w = np.full((5, 2), 2**26 + 1)
    x = np.full((3, 5), 2**26 + 3)
    product, wanted = exact.exact_product(w, 2**26 + 3)
    assert wanted == np.int64
    check(product, wanted, x, w)
    product2, wanted2 = exact.product_of_unknown(5, 2**26 + 3, 2**26 + 1)
    assert wanted2 == np.int64
    check(lambda left: product2(left, w), wanted2, x, w)


def test_float64_is_used_below_two_to_the_53() -> None:
    w = np.full((7, 2), 65535)
    product, wanted = exact.exact_product(w, 65535)
    assert wanted == np.float64
    check(product, wanted, np.full((2, 7), -65535), w)


@pytest.mark.parametrize("shape", [(0, 3), (4, 0), (0, 0), (2, 0, 3), (2, 3, 0), (0, 3, 2)])
def test_empty_reductions_and_outputs(shape: tuple[int, ...]) -> None:
    w = np.zeros(shape, np.int64)
    x = np.zeros((*shape[:-2], 5, shape[-2]), np.int64)
    check(*exact.exact_product(w, 255), x, w)
    product, wanted = exact.product_of_unknown(shape[-2], 255, 255)
    check(lambda left: product(left, w.astype(wanted)), wanted, x, w)


def test_zero_activations_or_weights_divide_nothing() -> None:
    w = np.zeros((6, 2), np.int64)
    check(*exact.exact_product(w, 0), np.zeros((1, 6), np.int64), w)
    product, wanted = exact.product_of_unknown(6, 0, 0)
    check(lambda left: product(left, w.astype(wanted)), wanted, np.zeros((1, 6), np.int64), w)


def test_the_largest_code_is_taken_from_both_ends() -> None:
    assert exact.largest_magnitude(0, 255, 0) == 255
    assert exact.largest_magnitude(0, 255, 200) == 200
    assert exact.largest_magnitude(-128, 127, 127) == 255
