"""qnn.divide against the literal QDQ model in onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from intonnx.ir.ops.divide import Divide
from intonnx.ir.ops.lut import Lut
from support import pairs, strategies
from support.models import Fed, Held, Params, qdq_model, s8, u8
from support.strategies import BinaryCase
from support.wings import check_model


def test_c1_c2_c3() -> None:
    pairs.check_constraints(lambda out: Divide(out=out))


@given(strategies.binary_cases(mixed=True), st.booleans())
@settings(max_examples=60)
def test_divide_through_every_wing(case: BinaryCase, quantized_input: bool) -> None:
    graph = pairs.check_pair("Div", case, quantized_input=quantized_input)
    assert isinstance(graph.nodes[-1].op, Divide)


@given(strategies.binary_cases(), st.sampled_from([np.uint8, np.int8]))
@settings(max_examples=20)
def test_every_pair_of_codes(case: BinaryCase, other: type) -> None:
    mixed = Params(other, case.b_params.scale, 3)
    pairs.check_every_pair("Div", BinaryCase(case.a, case.b, case.a_params, mixed, case.out))


@pytest.mark.parametrize("scale", [1e-38, 1e-20, 3e38])
def test_zero_divisors_and_extreme_scales_saturate(scale: float) -> None:
    case = BinaryCase(pairs.ALL, pairs.ALL, u8(scale, 114), u8(scale / 3, 7), u8(1.0, 90))
    pairs.check_every_pair("Div", case)


@pytest.mark.parametrize("held", pairs.HELD)
@pytest.mark.parametrize("first", [False, True])
def test_a_constant_operand(held: Params | None, first: bool) -> None:
    pairs.check_constant_operand("Div", pairs.constant(held), first=first)


@pytest.mark.parametrize("held", [Held(np.float32(0.3)), Held(np.int8(7), s8(0.1, 9))])
@pytest.mark.parametrize("first", [False, True])
def test_a_scalar_is_a_table(held: Held, first: bool) -> None:
    sides = [Fed("x", (256,), u8(0.02, 114), quantized=True), held]
    model = qdq_model("Div", sides[::-1] if first else sides, out=u8(0.05, 90))
    graph = check_model(model, {"x": pairs.ALL}, quanta=0)
    assert isinstance(graph.nodes[-1].op, Lut)


def test_a_float_constant_that_adds_an_axis() -> None:
    pairs.check_constant_operand("Div", pairs.constant(None, (1, 1, 1, 1)), first=True)


def test_float16_real_values() -> None:
    pairs.check_float16("Div")


def test_refusals() -> None:
    pairs.check_refusals("Div")
