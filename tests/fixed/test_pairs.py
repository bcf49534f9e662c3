"""Requantizing and element-wise operators under `fixed`, against fractions and `qlinear`."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import intonnx
from intonnx.ir.errors import CompileFailure
from intonnx.ir.ops.add import Add, Subtract
from intonnx.ir.ops.compare import Compare
from intonnx.ir.ops.divide import Divide
from intonnx.ir.ops.minimum import Maximum, Minimum
from intonnx.ir.ops.multiply import Multiply
from intonnx.ir.ops.power import Power
from intonnx.ir.ops.prelu import Prelu
from intonnx.ir.ops.quantize import Requantize
from intonnx.ir.types import DType, QuantParams, accumulator
from support.fixed import (
    NARROW,
    WIDE,
    Given,
    Real,
    assert_near,
    assert_one_quantum,
    centred,
    code,
    decompose,
    drawn_codes,
    drawn_params,
    fitted,
    half_up,
    params,
    reals,
    run_op,
    scale_of,
    value,
)

LITERAL: list[tuple[Any, Real]] = [
    (Add, operator.add), (Subtract, operator.sub), (Multiply, operator.mul),
    (Divide, lambda a, b: a / b), (Prelu, lambda a, b: a if a >= 0 else a * b),
]  # fmt: skip


@settings(max_examples=40)
@given(st.data())
def test_requantizing_is_one_multiplier_and_one_rounding(data: st.DataObject) -> None:
    x, out = data.draw(drawn_params()), data.draw(drawn_params())
    codes = data.draw(drawn_codes(x, (40,)))
    if data.draw(st.booleans()):
        scale = data.draw(st.sampled_from([1e-6, 0.013, 0.5, 40.0]))
        x = accumulator(np.float32(scale), None)
        wide = data.draw(st.lists(st.integers(-(1 << 31), (1 << 31) - 1), min_size=1))
        codes = np.array(wide, data.draw(st.sampled_from([np.int32, np.int64])))
    op = Requantize(out=out)
    found = run_op(op, [Given(codes, x)])
    factor = value(decompose(scale_of(x) / scale_of(out)))
    wanted = [code(half_up(whole * factor), out) for whole in centred(codes, x)]
    assert found.tolist() == wanted
    assert_near(found, reals(codes, x), out)
    assert_one_quantum(op, [Given(codes, x)], found)


@settings(max_examples=20)
@given(st.data())
def test_channels_have_their_own_multipliers(data: st.DataObject) -> None:
    scale = data.draw(st.lists(st.sampled_from([1e-4, 0.02, 1 / 3, 1.0]), min_size=3, max_size=3))
    x = accumulator(np.float32(scale), 1)
    out = data.draw(drawn_params())
    codes = np.random.default_rng(1).integers(-90000, 90000, (2, 3, 4), np.int32)
    found = run_op(Requantize(out=out), [Given(codes, x)])
    for channel in range(3):
        one = accumulator(np.asarray(x.scale[channel]), None)
        alone = run_op(Requantize(out=out), [Given(codes[:, channel], one)])
        np.testing.assert_array_equal(found[:, channel], alone)


def _real_pair(operands: Sequence[Given], function: Real) -> list[Fraction]:
    a, b = operands
    arrays = np.broadcast_arrays(a.array, b.array)
    sides = [
        reals(array, given.params) if given.params else [Fraction(float(v)) for v in array.flat]
        for array, given in zip(arrays, (a, b), strict=True)
    ]
    return [function(x, y) for x, y in zip(*sides, strict=True)]


@st.composite
def pairs(draw: st.DrawFn, function: Real, *, divides: bool) -> tuple[list[Given], QuantParams]:
    """Two operands, of which one may be constant codes or real values, and a result."""
    storages = draw(st.sampled_from([NARROW, WIDE]))
    operands = []
    shapes = draw(st.sampled_from([((3, 5), (3, 5)), ((3, 5), (5,)), ((1, 5), (3, 1)), ((4,), ())]))
    constant = draw(st.sampled_from([None, None, 0, 1]))
    for index, shape in enumerate(shapes):
        given = draw(drawn_params(storages))
        codes = draw(drawn_codes(given, shape))
        if divides and index == 1:
            codes = np.where(codes == given.scalar_zero_point, _other(given), codes)
            codes = codes.astype(given.storage.numpy)
        if index == constant and draw(st.booleans()):
            real = np.float32(np.random.default_rng(2).normal(0, 3, shape))
            operands.append(Given(real, None, constant=True))
        else:
            operands.append(Given(codes, given, constant=index == constant))
    return operands, fitted(draw, _real_pair(operands, function), storages)


def _other(given: QuantParams) -> int:
    zero = given.scalar_zero_point
    return zero + 1 if zero < given.qmax else zero - 1


@settings(max_examples=120)
@given(st.data())
def test_pairs_are_rounded_once(data: st.DataObject) -> None:
    kind, function = data.draw(st.sampled_from(LITERAL))
    operands, out = data.draw(pairs(function, divides=kind is Divide))
    op = kind(out=out)
    found = run_op(op, operands)
    assert_near(found, _real_pair(operands, function), out)
    assert_one_quantum(op, operands, found)


@pytest.mark.parametrize(("kind", "function"), LITERAL)
def test_accumulators_are_added_and_multiplied_exactly(kind: Any, function: Real) -> None:
    """A residual connection before the quantizer: int32 beside codes, at the ends of its range."""
    rng = np.random.default_rng(3)
    wide = rng.integers(-(1 << 31), 1 << 31, (6, 4), np.int64)
    wide[0], wide[1] = [(1 << 31) - 1, -(1 << 31), 1, -1], [1 << 35, -(1 << 35), 7, 0]
    narrow = params(DType.U8, 0.05, 3)
    codes = np.where(wide % 2 == 0, 200, 1).astype(np.uint8)
    accumulated = accumulator(np.float32(1e-9), None)
    for out in (params(DType.I8, 0.02, 5), params(DType.U16, 1e-4, 30000)):
        sums = Given(wide[:1] if kind is Divide else wide, accumulated)
        operands = [sums, Given(codes[: len(sums.array)], narrow)]
        found = run_op(kind(out=out), operands)
        assert_near(found, _real_pair(operands, function), out)


def test_quotients_by_zero_go_to_the_ends() -> None:
    p, out = params(DType.U8, 0.1, 10), params(DType.I8, 0.1, 3)
    x, y = np.uint8([9, 10, 11, 12]), np.uint8([10, 10, 10, 10])
    found = run_op(Divide(out=out), [Given(x, p), Given(y, p)])
    assert found.tolist() == [-128, -128, 127, 127]
    by_constant = [Given(x, p), Given(np.zeros(4, np.float32), None, constant=True)]
    assert run_op(Divide(out=out), by_constant).tolist() == [-128, -128, 127, 127]


def test_a_mask_of_infinities_leaves_the_other_elements_exact() -> None:
    p, out = params(DType.U8, 0.1, 10), params(DType.I8, 0.1, 3)
    mask = np.float32([0, -np.inf, np.inf, -3.4e38])
    operands = [Given(np.uint8([20] * 4), p), Given(mask, None, constant=True)]
    assert run_op(Add(out=out), operands).tolist() == [13, -128, 127, -128]
    with pytest.raises(CompileFailure, match="not a number"):
        run_op(Add(out=out), [operands[0], Given(np.float32([np.nan]), None, constant=True)])


@pytest.mark.parametrize("kind", [Minimum, Maximum])
@given(st.data())
@settings(max_examples=20)
def test_extremes_compare_codes(kind: Any, data: st.DataObject) -> None:
    a, b, out = (data.draw(drawn_params(NARROW)) for _ in range(3))
    operands = [Given(data.draw(drawn_codes(p, (30,))), p) for p in (a, b)]
    choose = min if kind is Minimum else max
    real = [choose(x, y) for x, y in zip(*(reals(o.array, o.params) for o in operands if o.params),
                                         strict=True)]  # fmt: skip
    found = run_op(kind(out=out), operands)
    assert_near(found, real, out)
    assert_one_quantum(kind(out=out), operands, found)


CONTEXT = Context(prec=50)


def _decimal(x: Fraction) -> Decimal:
    return CONTEXT.divide(Decimal(x.numerator), Decimal(x.denominator))


@settings(max_examples=40)
@given(st.data())
def test_powers_are_those_of_decimals(data: st.DataObject) -> None:
    a = data.draw(drawn_params(WIDE, st.sampled_from([0.01, 0.001, 1 / 256])))
    codes = data.draw(drawn_codes(a, (30,)))
    codes = np.where(np.array(centred(codes, a)) <= 0, _other(a), codes).astype(codes.dtype)
    codes = codes[np.array(centred(codes, a)) > 0]
    b = data.draw(drawn_params(NARROW, st.sampled_from([0.02, 1 / 64])))
    exponents = data.draw(drawn_codes(b, codes.shape))
    bases, powers = reals(codes, a), reals(exponents, b)
    real = [Fraction(CONTEXT.power(_decimal(x), _decimal(y)))
            for x, y in zip(bases, powers, strict=True)]  # fmt: skip
    out = fitted(data.draw, real, NARROW)
    operands = [Given(codes, a), Given(exponents, b)]
    found = run_op(Power(out=out), operands)
    assert_near(found, real, out)
    assert_one_quantum(Power(out=out), operands, found)


@pytest.mark.parametrize("exponent", [-2.0, -1.0, 0.0, 0.5, 1.0, 2.0, 3.0])
def test_powers_of_negative_numbers_and_zero(exponent: float) -> None:
    """Whole powers have a sign; what is no real number gets the least code."""
    p, out = params(DType.I16, 0.01, -7), params(DType.I16, 0.001, 100)
    codes = np.int16([-500, -107, -8, -7, -6, 93, 500])
    operands = [Given(codes, p), Given(np.float32([exponent]), None, constant=True)]
    found = run_op(Power(out=out), operands)
    assert_one_quantum(Power(out=out), operands, found)


@settings(max_examples=40)
@given(st.data())
def test_comparisons_are_those_of_qlinear(data: st.DataObject) -> None:
    relation = data.draw(st.sampled_from(["equal", "less", "less_or_equal", "greater"]))
    a, b = data.draw(drawn_params(WIDE)), data.draw(drawn_params(WIDE))
    operands = [Given(data.draw(drawn_codes(p, (40,))), p) for p in (a, b)]
    if data.draw(st.booleans()):
        values = np.float32(reals(operands[0].array, a))
        operands[1] = Given(values, None, constant=True)
    op = Compare(relation=relation)
    np.testing.assert_array_equal(run_op(op, operands), run_op(op, operands, "qlinear"))


@pytest.mark.parametrize("relation", ["equal", "less", "greater"])
def test_accumulators_are_compared_exactly(relation: Any) -> None:
    sums, p = accumulator(np.float32(2**-20), None), params(DType.I8, 0.5, 1)
    whole = np.int32([1 << 20, (1 << 20) + 1, (1 << 20) - 1, -(1 << 19), 0, 1])
    codes = np.int8([3, 3, 3, 0, 1, 1])
    real = zip(reals(whole, sums), reals(codes, p), strict=True)
    compare = {"equal": operator.eq, "less": operator.lt, "greater": operator.gt}[relation]
    found = run_op(Compare(relation=relation), [Given(whole, sums), Given(codes, p)])
    assert found.tolist() == [compare(x, y) for x, y in real]


def test_real_values_at_run_time_have_no_fixed_form() -> None:
    p = params(DType.U8, 0.1, 0)
    values = np.asarray([1, 2], np.float32)
    with pytest.raises(CompileFailure, match="real values until run time"):
        run_op(Add(out=p), [Given(np.uint8([1, 2]), p), Given(values)])


def test_the_failure_names_node_and_operator() -> None:
    graph = intonnx.parse(
        "graph @g(%x: q<u8, 0.1:3>[4], %f: f32[4]) -> (%y: q<u8, 0.1:3>[4]) {\n"
        "  %y = qnn.add(%x, %f) : q<u8, 0.1:3>[4]\n}"
    )
    with pytest.raises(CompileFailure, match=r"node 'y' \(qnn\.add\): no fixed form: "):
        intonnx.compile(graph, numerics="fixed")


def test_negative_constants_have_slopes_too() -> None:
    p, out = params(DType.U8, 0.5, 0), params(DType.I8, 0.25, 0)
    values = np.asarray([-1.5, 1.5, 0.0], np.float32)
    operands = [Given(values, None, constant=True), Given(np.uint8([4, 4, 4]), p)]
    assert run_op(Prelu(out=out), operands).tolist() == [-12, 6, 0]
