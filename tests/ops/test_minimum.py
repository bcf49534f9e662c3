"""qnn.minimum and qnn.maximum: constraints, and Min and Max through every wing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import intonnx
from intonnx.ir.ops.minimum import Maximum, Minimum
from intonnx.ir.types import quantized
from support import pairs, strategies
from support.models import Builder, Fed, Held, Operand, Params, qdq_model, run_inputs, s8, u8
from support.movers import check_same, names_of
from support.selections import OUT, TRIPLES, check_selection, check_types, refused
from support.strategies import BinaryCase
from support.wings import check_model

NAMES = {"Min": "qnn.minimum", "Max": "qnn.maximum"}
OPS = pytest.mark.parametrize("op_type", NAMES)


def test_c1_types() -> None:
    check_types(Minimum(out=OUT), [], [(2, 3), (3,)])
    with pytest.raises(intonnx.TypeFailure, match="C1"):
        Maximum(out=OUT).infer([])


def test_c2_shapes_broadcast() -> None:
    with pytest.raises(intonnx.TypeFailure, match="C2"):
        Maximum(out=OUT).infer([quantized(OUT, (2,)), quantized(OUT, (3,))])
    (kind,) = Maximum(out=OUT).infer([quantized(OUT, ("N", 1)), quantized(OUT, (3,))])
    assert kind.shape == ("N", 3)


@given(strategies.binary_cases(mixed=True), st.sampled_from(list(NAMES)), st.booleans())
@settings(max_examples=60)
def test_extremes_through_every_wing(case: BinaryCase, op_type: str, fed_codes: bool) -> None:
    graph = pairs.check_pair(op_type, case, quantized_input=fed_codes)
    assert graph.nodes[-1].op.title == NAMES[op_type]


@given(strategies.binary_cases(), st.sampled_from(list(NAMES)))
@settings(max_examples=15)
def test_every_pair_of_codes(case: BinaryCase, op_type: str) -> None:
    pairs.check_every_pair(op_type, case)


@OPS
@pytest.mark.parametrize("params", TRIPLES)
@pytest.mark.parametrize("fed_codes", [False, True])
def test_three_operands(op_type: str, params: tuple[Params, ...], fed_codes: bool) -> None:
    a, b, out = params
    inputs: list[Operand] = [Fed("a", (2, 3, 4), a, fed_codes), Fed("b", (3, 1), b, fed_codes)]
    inputs += [Held(np.float32(0.1)), Held(np.array([[3], [9], [1]]), s8(0.5, 2))]
    check_selection(op_type, inputs, out, NAMES[op_type])


@OPS
@pytest.mark.parametrize("held", pairs.HELD)
def test_a_constant_operand(op_type: str, held: Params | None) -> None:
    pairs.check_constant_operand(op_type, pairs.constant(held), first=True)


@OPS
@pytest.mark.parametrize("opset", [11, 12, 13])
def test_at_every_opset(op_type: str, opset: int) -> None:
    inputs = [Fed("a", (9,), u8(0.1, 3)), Fed("b", (9,), u8(0.2, 9))]
    check_selection(op_type, inputs, u8(0.2, 5), NAMES[op_type], opset=opset)


def test_scalars_beside_one_tensor_are_a_table() -> None:
    build = Builder()
    x = build.operand(Fed("x", (256,), u8(0.02, 114), quantized=True), 0)
    low, high = build.constant("low", np.float32(-0.3)), build.constant("high", np.float32(1.01))
    real = build.node("Min", [build.node("Max", [build.node("Tanh", [x]), low]), high])
    build.output(build.quantize(real, u8(0.01, 50), "y"), np.uint8)
    graph = check_model(build.model(), {"x": pairs.ALL}, quanta=0)
    assert names_of(graph) == ["qnn.lut"]


def test_the_quantizer_moves_up_to_a_convolution() -> None:
    build = Builder()
    x = build.operand(Fed("x", (1, 2, 5, 5), u8(0.02, 9), quantized=True), 0)
    weights = Held(np.random.default_rng(0).integers(-99, 99, (3, 2, 1, 1)), s8(0.01))
    conv = build.node("Conv", [x, build.operand(weights, 1)])
    other = build.operand(Fed("other", (1, 3, 1, 1), s8(0.1, 3), quantized=True), 2)
    build.output(build.quantize(build.node("Max", [conv, other]), s8(0.05, 3), "y"), np.int8)
    graph = check_model(build.model(), run_inputs(build.model()), literal_quanta=1)
    assert names_of(graph) == ["qnn.conv2d", "qnn.requantize", "qnn.maximum"]


@OPS
def test_codes_of_equal_parameters_need_no_quantizer(op_type: str) -> None:
    sides = [Fed("a", (3, 4), s8(0.1, 3)), Fed("b", (4,), s8(0.1, 3)), Held(np.float32(0.5))]
    graph = check_same(qdq_model(op_type, sides))
    assert NAMES[op_type] in names_of(graph)


def test_codes_of_other_parameters_need_one() -> None:
    for other in (Fed("b", (4,), s8(0.1, 4)), Held(np.float32([0.51, 0, 1, 2]))):
        model = qdq_model("Max", [Fed("a", (3, 4), s8(0.1, 3)), other])
        refused(model, "Max", "output-not-quantized", "cannot join 'a_q' as codes")


@OPS
def test_codes_that_the_model_compares_itself(op_type: str) -> None:
    build = Builder()
    names = [build.quantize(build.feed(n, (4,), np.float32), u8(0.1, 3), f"{n}q") for n in "ab"]
    chosen = build.node(op_type, names)
    build.output(build.dequantize(chosen, u8(0.1, 3), "y"), np.float32)
    assert NAMES[op_type] in names_of(check_same(build.model()))


@OPS
@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_plain_bytes(op_type: str, dtype: Any) -> None:
    build = Builder()
    names = [build.feed(name, (4,), dtype) for name in "ab"]
    build.output(build.node(op_type, names, name="y"), dtype)
    assert names_of(check_same(build.model())) == [NAMES[op_type]]


def test_int64_is_left_to_the_reference() -> None:
    build = Builder()
    names = [build.feed(name, (4,), np.int64) for name in "ab"]
    build.output(build.node("Max", names, name="y"), np.int64)
    graph = intonnx.import_model(build.model())
    assert names_of(graph) == ["onnx.Max"]
    assert intonnx.coverage(graph).float == 0


def test_refusals() -> None:
    side = Fed("a", (4,), u8(0.1, 3))
    held = Held(np.float32([1, np.nan, 2, 3]))
    model = qdq_model("Min", [side, held], out=u8(0.2))
    refused(model, "Min", "unsupported-attribute", "NaN")
    several = u8([0.1] * 4, 3, axis=0)
    model = qdq_model("Min", [side, Fed("b", (4,), u8(0.1, 3))], out=several)
    refused(model, "Min", "per-axis-input", "per tensor")
    model = qdq_model("Min", [side, Fed("b", (4,))])
    refused(model, "Min", "input-not-quantized", "'b' arrives as float")
