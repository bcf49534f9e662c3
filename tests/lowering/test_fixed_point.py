"""Multipliers and rounding shifts, held against fractions of Python's whole numbers."""

from __future__ import annotations

from fractions import Fraction

import hypothesis.strategies as st
import numpy as np
from hypothesis import given

from intonnx.lowering import fixed_point
from intonnx.lowering.fixed_point import LIMB, Quotient, Scaling, multiplier, recorded
from support.fixed import decompose, half_up, value

mantissas = st.integers(1, 1 << 24) | st.sampled_from([1, (1 << 24) - 1, (1 << 23) + 1])
factors = st.builds(
    lambda m, e, sign: sign * Fraction(m) * Fraction(2) ** e,
    mantissas, st.integers(-90, 30), st.sampled_from([1, -1]),
)  # fmt: skip
magnitudes = st.sampled_from([1 << 9, 1 << 17, 1 << 31, 1 << 40, 1 << 60]).flatmap(
    lambda limit: st.integers(-limit, limit)
)


def one(factor: Fraction) -> fixed_point.Multiplier:
    array = np.empty((), object)
    array[()] = factor
    return multiplier(array)


@given(factors)
def test_a_multiplier_is_the_nearest_of_31_bits(factor: Fraction) -> None:
    made = one(factor)
    pair = int(made.m), int(made.shift)
    assert pair == decompose(factor)
    assert LIMB // 2 <= abs(pair[0]) < LIMB
    error = abs(value(pair) / factor - 1)
    assert error <= Fraction(1, 1 << 31)
    assert np.isclose(made.error, float(error), rtol=1e-9, atol=0)


def test_of_several_multipliers_with_one_shift_the_largest_has_all_digits() -> None:
    small, large = fixed_point.common_multipliers(
        [fixed_point.fractions(np.asarray(v)) for v in (0.001, -3.0)]
    )
    assert int(large.m) == -(3 << 29)
    assert int(small.shift) == int(large.shift) == 2
    assert int(small.m) == round(Fraction(0.001) * (1 << 29))


@given(factors, st.lists(magnitudes, min_size=1, max_size=8), st.sampled_from([9, 17, 33, 40]))
def test_products_are_rounded_once_half_up_and_limited(
    factor: Fraction, values: list[int], bits: int
) -> None:
    limit = 1 << bits
    scaling = Scaling(one(factor), limit)
    narrow = [v for v in values if -LIMB <= v < LIMB]
    for numbers, dtype in ((values, np.int64), (narrow, np.int32)):
        found = scaling(np.array(numbers, dtype)).tolist()
        for x, y in zip(numbers, found, strict=True):
            wanted = half_up(x * value(decompose(factor)))
            if abs(wanted) <= limit:
                assert y == wanted
            else:
                assert abs(y) > limit
                assert (y > 0) == (wanted > 0)


@given(st.integers(-62, 61), st.integers(-(1 << 61), 1 << 61))
def test_shifts_round_half_up(total: int, x: int) -> None:
    found = int(fixed_point.rounded_shift(np.array(x), total))
    wanted = half_up(Fraction(x) / Fraction(2) ** total)
    if abs(wanted) <= 1 << 59:
        assert found == wanted
    else:
        assert abs(found) >= 1 << 59
        assert (found > 0) == (wanted > 0)


@given(factors, st.integers(-(1 << 17), 1 << 17), st.integers(-(1 << 17), 1 << 17))
def test_quotients_are_rounded_once(factor: Fraction, x: int, y: int) -> None:
    limit = 1 << 17
    found = int(Quotient(one(factor), limit, 1 << 17)(np.array(x), np.array(y)))
    sign = 1 if factor > 0 else -1
    if y == 0:
        assert found == (limit + 1 if x * sign > 0 else -limit - 1)
        return
    wanted = half_up(x * value(decompose(factor)) / y)
    if abs(wanted) <= limit:
        assert found == wanted
    else:
        assert abs(found) > limit
        assert (found > 0) == (wanted > 0)


def test_multipliers_are_recorded() -> None:
    with recorded() as found:
        fixed_point.ratio(np.float32([0.1, 0.2, 0.1]), np.float32(0.3))
    assert [made.m.size for made in found] == [3]
    fixed_point.ratio(np.float32(0.1), np.float32(0.3))
    assert len(found) == 1
