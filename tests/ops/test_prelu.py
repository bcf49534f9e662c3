"""qnn.prelu against the literal QDQ model in onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from intonnx.ir.ops.lut import Lut
from intonnx.ir.ops.prelu import Prelu
from support import pairs, strategies
from support.models import Fed, Held, Params, qdq_model, run_inputs, s8, u8, u16
from support.strategies import BinaryCase
from support.wings import check_model


def test_c1_c2_c3() -> None:
    pairs.check_constraints(lambda out: Prelu(out=out))


def is_slope(case: BinaryCase) -> bool:
    """Whether `b` broadcasts to the shape of `a`, as ONNX has it."""
    return np.broadcast_shapes(case.a.shape, case.b.shape) == case.a.shape


@given(strategies.binary_cases(mixed=True).filter(is_slope), st.booleans())
@settings(max_examples=50)
def test_prelu_through_every_wing(case: BinaryCase, quantized_input: bool) -> None:
    pairs.check_pair("PRelu", case, quantized_input=quantized_input)


@given(strategies.binary_cases())
@settings(max_examples=15)
def test_every_pair_of_codes(case: BinaryCase) -> None:
    for b, row in ((pairs.ALL[:, None], pairs.ALL), (pairs.ALL[:, None], pairs.ALL[:1])):
        a = np.broadcast_to(row, (256, 256)).view(np.dtype(case.a_params.dtype))
        b = b.view(np.dtype(case.b_params.dtype))
        pairs.check_pair("PRelu", BinaryCase(a, b, case.a_params, case.b_params, case.out))


@pytest.mark.parametrize("held", pairs.HELD)
@pytest.mark.parametrize("x", [u8(0.02, 114), s8(0.3, 127), u16(0.001, 30000)])
@pytest.mark.parametrize("quantized_input", [False, True])
def test_a_slope_for_each_channel(held: Params | None, x: Params, quantized_input: bool) -> None:
    slope = pairs.constant(held, (3, 1, 1))
    model = qdq_model("PRelu", [Fed("x", (2, 3, 4, 5), x, quantized_input), slope], out=x)
    graph = check_model(model, run_inputs(model), quanta=0, kernel=False)
    assert isinstance(graph.nodes[-1].op, Prelu)


def test_one_slope_is_a_table() -> None:
    for held in (Held(np.float32([[-0.3]])), Held(np.int8([77]), s8(0.01, 3))):
        sides = [Fed("x", (16, 16), u8(0.02, 114), quantized=True), held]
        model = qdq_model("PRelu", sides, out=u8(0.01, 90))
        graph = check_model(model, {"x": pairs.ALL.reshape(16, 16)}, quanta=0)
        assert isinstance(graph.nodes[-1].op, Lut)


def test_float16_real_values() -> None:
    pairs.check_float16("PRelu")


def test_refusals() -> None:
    pairs.check_refusals("PRelu")
