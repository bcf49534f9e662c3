"""Several element-wise operators that become one table, against onnxruntime on every code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

import intonnx
from support.models import Builder, Fed, Held, Params, chain_model, qdq_model, s8, u8
from support.runtime import run_onnxruntime
from support.tables import check, every_code, ops_of
from support.wings import apart, refusal_of

CHAINS: list[Sequence[tuple[str, Mapping[str, Any]]]] = [
    [("Sigmoid", {}), ("Tanh", {})],
    [("Abs", {}), ("Sqrt", {}), ("Neg", {}), ("Exp", {}), ("Reciprocal", {})],
    [("Log", {}), ("Relu", {}), ("Softplus", {})],
    [("LeakyRelu", {"alpha": 0.1}), ("Clip", {}), ("Erf", {}), ("Identity", {}), ("Floor", {})],
    [("HardSigmoid", {}), ("Round", {}), ("Relu", {})],
]


@pytest.mark.parametrize("steps", CHAINS, ids=lambda steps: "-".join(op for op, _ in steps))
@pytest.mark.parametrize(("x", "y"), [(u8(0.03, 128), u8(0.01, 3)), (s8(0.05, -9), s8(0.1, 0))])
def test_a_chain_is_one_table(
    steps: Sequence[tuple[str, Mapping[str, Any]]], x: Params, y: Params
) -> None:
    graph = check(
        chain_model(Fed("x", (4, 64), x, quantized=True), steps, out=y),
        every_code(x.dtype).reshape(4, 64),
    )
    assert ops_of(graph).count("qnn.lut") == 1
    assert set(ops_of(graph)) <= {"qnn.lut", "qnn.storage_cast", "qnn.clip"}


@pytest.mark.parametrize("opset", [10, 11, 13, 21])
def test_clip_in_a_chain_by_attributes_or_inputs(opset: int) -> None:
    build = Builder(opset)
    x = build.operand(Fed("x", (256,), u8(0.05, 128), quantized=True), 0)
    value = build.node("Exp", [x])
    if opset < 11:
        value = build.node("Clip", [value], min=0.25, max=2.0)
    else:
        value = build.node("Clip", [value, "", build.constant("top", np.float32(2))])
    value = build.node("Log", [value])
    build.output(build.quantize(value, u8(0.013, 90), "y"), np.uint8)
    graph = check(build.model(), every_code(np.uint8))
    assert ops_of(graph) == ["qnn.storage_cast", "qnn.lut"]


def silu(build: Builder, x: str) -> str:
    return build.node("Mul", [x, build.node("Sigmoid", [x])])


def hard_swish(build: Builder, x: str) -> str:
    three, zero, six = (build.constant(f"k{v}", np.float32(v)) for v in (3, 0, 6))
    top = build.node("Clip", [build.node("Add", [x, three]), zero, six])
    return build.node("Mul", [build.node("Mul", [x, top]), build.constant("k", np.float32(1 / 6))])


def gelu(build: Builder, x: str) -> str:
    inner = build.node("Mul", [x, build.constant("r", np.float32([2**-0.5]))])
    one = build.constant("one", np.float32(1))
    grown = build.node("Add", [build.node("Erf", [inner]), one])
    half = build.node("Mul", [x, build.constant("half", np.float32([[0.5]]))])
    return build.node("Mul", [half, grown])


def square_of_shifted(build: Builder, x: str) -> str:
    moved = build.node("Sub", [build.constant("one", np.float32(1)), x])
    return build.node("Mul", [moved, moved])


@pytest.mark.parametrize("make", [silu, hard_swish, gelu, square_of_shifted])
@pytest.mark.parametrize(("x", "y"), [(u8(0.03, 128), u8(0.02, 3)), (s8(0.05, -9), s8(0.03, -90))])
def test_a_diamond_is_one_table(make: Any, x: Params, y: Params) -> None:
    build = Builder()
    start = build.operand(Fed("x", (16, 16), x, quantized=True), 0)
    build.output(build.quantize(make(build, start), y, "y"), y.dtype)
    graph = check(build.model(), every_code(x.dtype).reshape(16, 16))
    assert ops_of(graph) == ["qnn.storage_cast", "qnn.lut"]


def test_a_dequantize_for_each_reader_is_one_tensor_still() -> None:
    build = Builder()
    codes = build.feed("x", (256,), np.uint8)
    reals = [build.dequantize(codes, u8(0.03, 128), f"real{i}") for i in (0, 1)]
    value = build.node("Mul", [reals[0], build.node("Sigmoid", [reals[1]])])
    build.output(build.quantize(value, u8(0.02, 10), "y"), np.uint8)
    assert ops_of(check(build.model(), every_code(np.uint8)))[-1] == "qnn.lut"


def test_two_quantizers_are_two_tables() -> None:
    build = Builder()
    x = build.operand(Fed("x", (256,), u8(0.03, 128), quantized=True), 0)
    value = build.node("Exp", [x])
    build.output(build.quantize(value, u8(0.02, 0), "y"), np.uint8)
    build.output(build.quantize(value, s8(0.5, -7), "z"), np.int8)
    assert ops_of(check(build.model(), every_code(np.uint8))).count("qnn.lut") == 2


def test_a_value_inside_a_chain_may_be_quantized_too() -> None:
    build = Builder()
    x = build.operand(Fed("x", (256,), u8(0.03, 128), quantized=True), 0)
    inner = build.node("Sigmoid", [x])
    build.output(build.quantize(inner, u8(1 / 256, 0), "y"), np.uint8)
    build.output(build.quantize(build.node("Log", [inner]), u8(0.01, 250), "z"), np.uint8)
    assert ops_of(check(build.model(), every_code(np.uint8))).count("qnn.lut") == 2


def test_a_float_reader_keeps_the_float_operator() -> None:
    build = Builder()
    x = build.operand(Fed("x", (256,), u8(0.03, 128), quantized=True), 0)
    value = build.node("Sigmoid", [x], name="s")
    build.output(build.quantize(value, u8(1 / 256, 0), "y"), np.uint8)
    build.output("s", np.float32)
    model = build.model()
    assert refusal_of(model, "Sigmoid")[0] == "float-result-used"
    graph, codes = intonnx.import_model(model), {"x": every_code(np.uint8)}
    wanted = run_onnxruntime(model, codes, optimized=False)
    found = intonnx.compile(graph).run(codes)
    apart({"y": found["y"]}, {"y": wanted["y"]}, 0)
    np.testing.assert_allclose(found["s"], wanted["s"], atol=1e-7)
    assert "qnn.lut" in ops_of(graph)


@pytest.mark.parametrize(
    ("op_type", "first", "scalar", "quanta"),
    [
        ("Div", True, 0.3, 0),
        ("Div", False, 0.3, 0),
        ("Pow", True, 2.0, 0),
        ("Pow", True, 3.0, 0),
        ("Pow", True, 0.5, 1),
        ("Pow", True, -1.0, 1),
        ("Pow", False, 2.0, 1),
        ("PRelu", True, [-0.3], 0),
        ("Min", True, 0.3, 0),
        ("Max", False, [[0.3]], 0),
        ("Sum", True, 0.3, 0),
    ],
)
def test_a_scalar_on_the_other_side(op_type: str, first: bool, scalar: Any, quanta: int) -> None:
    # Pow by 2 and 3 is products, else the C library's, which is not always correctly rounded.
    x = Fed("x", (4, 64), s8(0.05, -9), quantized=True)
    operands = [x, Held(np.float32(scalar))]
    model = qdq_model(op_type, operands if first else operands[::-1], out=s8(0.1, 3))
    graph = check(model, every_code(np.int8).reshape(4, 64), quanta)
    assert ops_of(graph) == ["qnn.storage_cast", "qnn.lut"]


def test_pow_with_a_whole_exponent() -> None:
    x = Fed("x", (256,), u8(0.05, 128), quantized=True)
    check(qdq_model("Pow", [x, Held(np.int64(2))], out=u8(0.1, 3)), every_code(np.uint8))


def test_a_scalar_behind_a_dequantize() -> None:
    x = Fed("x", (256,), u8(0.05, 128), quantized=True)
    model = qdq_model("PRelu", [x, Held(np.array([25]), u8(0.01))], out=u8(0.1, 3))
    check(model, every_code(np.uint8))


@pytest.mark.parametrize("first", [True, False])
def test_the_reason_names_the_value_that_is_not_quantized(first: bool) -> None:
    """Not the array that it meets, nor one further up: neither has to change."""
    build = Builder()
    array = build.constant("array", np.linspace(0, 1, 6, dtype=np.float32))
    value = build.operand(Fed("x", (4, 6)), 0)
    inner = build.node("Add", [array, value] if first else [value, array])
    last = build.node("Mul", [inner, build.node("Sigmoid", [inner])])
    build.output(build.quantize(last, u8(0.01, 3), "y"), np.uint8)
    model = build.model()
    code, detail = refusal_of(model, "Add")
    assert code == "input-not-quantized"
    assert f"'{value}' arrives as float" in detail
    code, detail = refusal_of(model, "Mul")
    assert code == "input-not-quantized"
    assert f"'{inner}' arrives as float" in detail
