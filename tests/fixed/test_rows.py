"""Softmax and normalizations under `fixed`, against decimals of 50 digits and `qlinear`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Context, Decimal
from fractions import Fraction

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import assume, given, settings

from intonnx.ir.errors import CompileFailure
from intonnx.ir.ops.batch_norm import BatchNorm
from intonnx.ir.ops.instance_norm import GroupNorm, InstanceNorm
from intonnx.ir.ops.layer_norm import LayerNorm, RmsNorm
from intonnx.ir.ops.lrn import LocalResponseNorm
from intonnx.ir.ops.softmax import Softmax
from intonnx.ir.types import DType
from intonnx.lowering import fixed_functions
from support.fixed import (
    WIDE,
    Given,
    assert_near,
    assert_one_quantum,
    drawn_codes,
    drawn_params,
    fitted,
    params,
    reals,
    run_op,
)

CONTEXT = Context(prec=50)
STEPS = st.sampled_from([0.001, 0.02, 0.1, 1 / 3, 1.0])


def dec(x: Fraction) -> Decimal:
    return CONTEXT.divide(Decimal(x.numerator), Decimal(x.denominator))


def root(x: Fraction) -> Fraction:
    return Fraction(CONTEXT.sqrt(dec(x)))


def softmax(row: Sequence[Fraction], *, logarithm: bool) -> list[Fraction]:
    top = max(row)
    e = [CONTEXT.exp(dec(x - top)) for x in row]
    total = sum(e, Decimal(0))
    if logarithm:
        return [x - top - Fraction(CONTEXT.ln(total)) for x in row]
    return [Fraction(CONTEXT.divide(v, total)) for v in e]


@settings(max_examples=25)
@given(st.data())
def test_softmax(data: st.DataObject) -> None:
    logarithm = data.draw(st.booleans())
    x = data.draw(drawn_params(WIDE, STEPS))
    codes = data.draw(drawn_codes(x, (2, data.draw(st.integers(1, 24)))))
    real = [v for row in codes for v in softmax(reals(row, x), logarithm=logarithm)]
    out = fitted(data.draw, real, WIDE)
    if not logarithm:
        telling = st.sampled_from([1 / 255, 1 / 256, 1 / 65535, 1 / 127])
        out = data.draw(drawn_params(WIDE, telling)) if data.draw(st.booleans()) else out
    assume(logarithm or float(out.scalar_scale) > 2.0**-31)
    op = Softmax(axis=1, logarithm=logarithm, out=out)
    found = run_op(op, [Given(codes, x)])
    assert_near(found, real, out)
    if not logarithm:
        assert_one_quantum(op, [Given(codes, x)], found)


def test_probabilities_below_the_digits_of_a_multiplier_have_no_fixed_form() -> None:
    p = params(DType.U8, 0.1, 0)
    with pytest.raises(CompileFailure, match="at most 2"):
        run_op(Softmax(axis=1, out=params(DType.U8, 2.0**-31, 0)), [Given(np.uint8([[1, 2]]), p)])


def test_softmax_of_long_rows() -> None:
    """As many small summands as large ones that a float32 sum would lose."""
    x, out = params(DType.U8, 0.07, 0), params(DType.U16, 1 / 65535, 0)
    codes = np.uint8([[0, 255, *[20] * 1000]])
    found = run_op(Softmax(axis=1, out=out), [Given(codes, x)])
    real = softmax(reals(codes, x), logarithm=False)
    assert_near(found, real, out, Fraction(1, 100))


def normalized(row: Sequence[Fraction], epsilon: float, *, mean: bool) -> list[Fraction]:
    middle = sum(row, Fraction(0)) / len(row) if mean else Fraction(0)
    variance = sum(((v - middle) ** 2 for v in row), Fraction(0)) / len(row)
    inverse = 1 / root(variance + Fraction(epsilon))
    return [(v - middle) * inverse for v in row]


@settings(max_examples=25)
@given(st.data())
def test_normalizations_over_the_last_axis(data: st.DataObject) -> None:
    mean = data.draw(st.booleans())
    x = data.draw(drawn_params(WIDE, STEPS))
    length = data.draw(st.integers(1, 40))
    codes = data.draw(drawn_codes(x, (2, length)))
    if data.draw(st.integers(0, 3)) == 0:
        codes[:] = codes[0, 0]
    epsilon = data.draw(st.sampled_from([1e-5, 1e-12, 0.1]))
    rng = np.random.default_rng(length)
    scale = np.float32(rng.normal(0, 2, length) * data.draw(st.sampled_from([0, 1, 100])))
    operands = [Given(codes, x), Given(scale, None, constant=True)]
    bias = np.zeros(length, np.float32)
    if mean and data.draw(st.booleans()):
        bias = np.float32(rng.normal(0, 3, length))
        operands.append(Given(bias, None, constant=True))
    rows = [normalized(reals(row, x), epsilon, mean=mean) for row in codes]
    real = [v * Fraction(float(s)) + Fraction(float(b))
            for row in rows for v, s, b in zip(row, scale, bias, strict=True)]  # fmt: skip
    out = fitted(data.draw, real, WIDE)
    op = (LayerNorm if mean else RmsNorm)(axis=-1, epsilon=epsilon, out=out)
    found = run_op(op, operands)
    assert_near(found, real, out, Fraction(1, 128))
    assert_one_quantum(op, operands, found)


@pytest.mark.parametrize("storage", [DType.U8, DType.I16])
def test_channels_and_groups_are_normalized_alike(storage: DType) -> None:
    x, out = params(storage, 0.03, 100), params(storage, 4 / (1 << storage.bits), 90)
    codes = np.random.default_rng(7).integers(60, 200, (2, 4, 5, 6)).astype(storage.numpy)
    scale, bias = (np.asarray(v, np.float32) for v in ([1, -2, 0.5, 3], [0, 1, -1, 0.25]))
    operands = [Given(codes, x), *(Given(a, None, constant=True) for a in (scale, bias))]
    for op, shape in (
        (InstanceNorm(epsilon=1e-5, out=out), (8, -1)),
        (GroupNorm(epsilon=1e-5, groups=2, out=out), (4, -1)),
    ):
        found = run_op(op, operands)
        rows = [normalized(reals(row, x), 1e-5, mean=True) for row in codes.reshape(shape)]
        flat = np.array([v for row in rows for v in row], object).reshape(codes.shape)
        factors = [np.array([Fraction(float(v)) for v in a], object).reshape(1, -1, 1, 1)
                   for a in (scale, bias)]  # fmt: skip
        real = list((flat * factors[0] + factors[1]).ravel())
        assert_near(found, real, out, Fraction(1, 128))
        assert_one_quantum(op, operands, found)


def test_a_constant_row_without_epsilon_has_the_least_code() -> None:
    p = params(DType.U8, 0.1, 10)
    operands = [Given(np.uint8([[7, 7], [7, 8]]), p), Given(np.float32([1, 1]), None, True)]
    op = LayerNorm(axis=-1, epsilon=0.0, out=p)
    found = run_op(op, operands)
    assert found.tolist() == [[0, 0], [0, 20]]
    assert_one_quantum(op, operands, found)


def test_factors_that_are_not_constant_have_no_fixed_form() -> None:
    p = params(DType.U8, 0.1, 10)
    operands = [Given(np.uint8([[7, 7]]), p), Given(np.float32([1, 1]))]
    with pytest.raises(CompileFailure, match="real values until run time"):
        run_op(LayerNorm(axis=-1, out=p), operands)


@settings(max_examples=25)
@given(st.data())
def test_batch_normalization(data: st.DataObject) -> None:
    x = data.draw(drawn_params(WIDE, STEPS))
    codes = data.draw(drawn_codes(x, (2, 3, 5)))
    rng = np.random.default_rng(data.draw(st.integers(0, 9)))
    scale, bias, mean = (np.float32(rng.normal(0, 2, 3)) for _ in range(3))
    variance = np.float32([1e-3, 1.0, 40.0])
    factors = [Fraction(float(s)) / root(Fraction(float(v)) + Fraction(float(np.float32(1e-5))))
               for s, v in zip(scale, variance, strict=True)]  # fmt: skip
    real = [
        (v - Fraction(float(m))) * f + Fraction(float(b))
        for image in codes
        for row, m, f, b in zip(image, mean, factors, bias, strict=True)
        for v in reals(row, x)
    ]
    out = fitted(data.draw, real, WIDE)
    op = BatchNorm(epsilon=1e-5, out=out)
    constants = [Given(a, None, constant=True) for a in (scale, bias, mean, variance)]
    found = run_op(op, [Given(codes, x), *constants])
    assert_near(found, real, out, Fraction(1, 1 << 10))
    assert_one_quantum(op, [Given(codes, x), *constants], found)


@settings(max_examples=25)
@given(st.data())
def test_local_response(data: st.DataObject) -> None:
    x = data.draw(drawn_params(WIDE, STEPS))
    codes = data.draw(drawn_codes(x, (1, 5, 4)))
    size = data.draw(st.sampled_from([1, 3, 4]))
    alpha, beta = data.draw(st.sampled_from([(1e-4, 0.75), (0.5, 0.5), (2.0, 1.0), (0.0, 2.0)]))
    op_of = {"size": size, "alpha": alpha, "beta": beta, "bias": 1.0}
    values = [reals(row, x) for row in codes[0]]
    real = []
    for c in range(5):
        near = range(max(0, c - (size - 1) // 2), min(5, c + size // 2 + 1))
        for i in range(4):
            squares = sum((values[n][i] ** 2 for n in near), Fraction(0))
            base = 1 + Fraction(alpha) / size * squares
            power = CONTEXT.power(dec(base), Decimal(-beta))
            real.append(values[c][i] * Fraction(power))
    out = fitted(data.draw, real, WIDE)
    op = LocalResponseNorm(out=out, **op_of)
    found = run_op(op, [Given(codes, x)])
    assert_near(found, real, out)
    assert_one_quantum(op, [Given(codes, x)], found)


def test_a_base_that_can_be_negative_has_no_fixed_form() -> None:
    p = params(DType.U8, 0.1, 10)
    op = LocalResponseNorm(size=3, bias=-1.0, out=p)
    with pytest.raises(CompileFailure, match="negative or 0"):
        run_op(op, [Given(np.zeros((1, 3, 2), np.uint8), p)])


def test_tables_of_exponentials_are_rounded_correctly() -> None:
    step = Fraction(float(np.float32(0.037)))
    table = fixed_functions.exponentials(step, 600, 30)
    for n in (0, 1, 2, 100, 255, 256, 257, 511, 599):
        assert table[n] == round(Fraction(CONTEXT.exp(dec(-n * step))) * (1 << 30))


@given(st.integers(1, (1 << 62) - 1) | st.sampled_from([1, 2, 3, (1 << 62) - 1, 1 << 61]))
def test_logarithms_are_right_to_34_binary_digits(x: int) -> None:
    found = int(fixed_functions.log2(np.array([x]))[0])
    wanted = CONTEXT.divide(CONTEXT.ln(Decimal(x)), CONTEXT.ln(Decimal(2)))
    assert abs(Fraction(found, 1 << 40) - Fraction(wanted)) < Fraction(1, 1 << 34)


@given(st.integers(-(1 << 46), 1 << 46))
def test_powers_of_two_are_right_to_29_binary_digits(x: int) -> None:
    m, shift = (int(part[0]) for part in fixed_functions.exp2(np.array([x])))
    assert 1 << 30 <= m <= 1 << 31
    fraction = Fraction(x, 1 << 40) - math.floor(Fraction(x, 1 << 40))
    wanted = Fraction(CONTEXT.power(Decimal(2), dec(fraction)))
    found = Fraction(m) * Fraction(2) ** (shift - 31 - (x >> 40))
    assert abs(found / wanted - 1) < Fraction(1, 1 << 29)
