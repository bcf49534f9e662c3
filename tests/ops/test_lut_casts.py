"""Casts between float types as steps of a table, and casts of codes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings

import intonnx
from intonnx.ir.ops.lut import FloatStep, Lut, step_types
from intonnx.ir.types import DType
from support import strategies
from support.models import (
    Array,
    Builder,
    Fed,
    Params,
    chain_model,
    qdq_model,
    run_inputs,
    s8,
    s16,
    u8,
    u16,
)
from support.movers import check_same, names_of
from support.selections import refused
from support.wings import check_model, refusal_of

F32, F16, F64 = onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16, onnx.TensorProto.DOUBLE
BF16 = onnx.TensorProto.BFLOAT16
Steps = Sequence[tuple[str, dict[str, Any]]]
PAIR: Steps = [("Cast", {"to": F16}), ("Cast", {"to": F32})]


def every_code(dtype: Any) -> Array:
    bits = 8 * np.dtype(dtype).itemsize
    return np.arange(1 << bits).astype(f"u{bits // 8}").view(dtype)


def check(before: Params, steps: Steps, after: Params) -> intonnx.Graph:
    codes = every_code(before.dtype)
    model = chain_model(Fed("x", codes.shape, before, quantized=True), steps, out=after)
    graph = check_model(model, {"x": codes}, quanta=0)
    assert names_of(graph) == ["qnn.lut"]
    return graph


def test_the_types_of_the_steps() -> None:
    steps = [
        FloatStep("Relu"),
        FloatStep("Cast", (1,), (("to", "f16"),)),
        FloatStep("Add", (0.5, 2)),
        FloatStep("Mul", (1, 0)),
    ]
    expected = [DType.F32, DType.F32, DType.F16, DType.F16, DType.F32]
    assert step_types(steps, DType.F32) == expected


@given(strategies.params(wide=True), strategies.params(wide=True))
@settings(max_examples=30)
def test_a_cast_pair_is_a_table(before: Params, after: Params) -> None:
    check(before, PAIR, after)


def test_a_cast_pair_rounds() -> None:
    # 1001 steps of 1/3 have no float16: the table is another than that of a requantize.
    codes = every_code(np.uint16)
    found = [
        intonnx.compile(
            intonnx.import_model(
                chain_model(Fed("x", codes.shape, u16(1 / 3), True), steps, out=u16(0.5))
            )
        ).run({"x": codes})["y"]
        for steps in (PAIR, [("Identity", {})])
    ]
    assert np.any(found[0] != found[1])


@pytest.mark.parametrize("scale", [1e-8, 1e-5, 300.0, 3e38])
def test_float16_overflows_and_underflows(scale: float) -> None:
    check(s8(scale, 3), PAIR, u8(scale * 0.7, 100))
    check(s16(scale, 3), PAIR, s16(scale * 0.7, 100))


@pytest.mark.parametrize(
    "steps",
    [
        [("Tanh", {}), *PAIR],
        [*PAIR, ("Sigmoid", {})],
        [("Cast", {"to": F16}), ("Abs", {}), ("Neg", {}), ("Cast", {"to": F32})],
        [*PAIR, ("Sqrt", {}), *PAIR],
        [("Cast", {"to": BF16}), ("Cast", {"to": F32})],
        [("Cast", {"to": F64}), ("Cast", {"to": F32})],
        [("Tanh", {}), ("Cast", {"to": F64}), ("Cast", {"to": F16}), ("Cast", {"to": F32})],
    ],
)
def test_casts_in_a_chain(steps: Steps) -> None:
    check(u8(0.0371, 114), steps, u8(0.011, 90))


def test_scalars_of_float16_between_the_casts() -> None:
    build = Builder()
    x = build.operand(Fed("x", (256,), u8(0.0371, 114), quantized=True), 0)
    half = build.node("Cast", [x], to=F16)
    scaled = build.node("Mul", [half, build.constant("c", np.float16(0.3))])
    real = build.node("Add", [build.node("Cast", [scaled], to=F32), x])
    build.output(build.quantize(real, u8(0.05, 90), "y"), np.uint8)
    # onnxruntime has no float16 product: it multiplies in float32, and can leave out a rounding.
    graph = check_model(build.model(), {"x": every_code(np.uint8)}, quanta=1, literal_quanta=1)
    assert names_of(graph) == ["qnn.lut"]


def test_a_cast_before_a_quantizer_of_float16() -> None:
    build = Builder()
    x = build.operand(Fed("x", (256,), u8(0.0371, 114), quantized=True), 0)
    half = build.node("Cast", [x], to=F16)
    given = [build.constant("s", np.float16(0.05)), build.constant("z", np.uint8(90))]
    build.output(build.node("QuantizeLinear", [half, *given], name="y"), np.uint8)
    graph = check_model(build.model(), {"x": every_code(np.uint8)}, quanta=0)
    assert names_of(graph) == ["qnn.lut"]


def test_the_recipe_prints_and_parses() -> None:
    model = chain_model(Fed("x", (4,), u8(0.1, 3)), PAIR, out=u8(0.2))
    graph = check_same(model, run_inputs(model))
    (op,) = [node.op for node in graph.nodes if isinstance(node.op, Lut)]
    assert [dict(step.attributes)["to"] for step in op.recipe] == ["f16", "f32"]


@pytest.mark.parametrize("dtype", [np.int32, np.float32, np.int16])
def test_a_cast_of_codes_stays_a_cast_of_integers(dtype: Any) -> None:
    build = Builder()
    codes = build.quantize(build.feed("x", (2, 3), np.float32), u8(0.1, 3), "codes")
    target = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    build.output(build.node("Cast", [codes], name="y", to=target), dtype)
    model = build.model()
    check_model(model, run_inputs(model), quanta=0, floats=int(dtype is np.float32))


def test_integers_between_the_casts_are_refused() -> None:
    build = Builder()
    x = build.operand(Fed("x", (4,), u8(0.1, 3)), 0)
    back = build.node("Cast", [build.node("Cast", [x], to=onnx.TensorProto.INT32)], to=F32)
    build.output(build.quantize(back, u8(0.1), "y"), np.uint8)
    nodes = intonnx.coverage(intonnx.import_model(build.model())).nodes
    first = next(node for node in nodes if node.op == "Cast")
    assert (first.state, first.code) == ("float", "unsupported-type")
    assert "from f32 to i32" in first.detail


def test_arithmetic_in_float64_is_refused() -> None:
    steps: Steps = [("Cast", {"to": F64}), ("Sqrt", {}), ("Cast", {"to": F32})]
    model = chain_model(Fed("x", (4,), u8(0.1, 3)), steps, out=u8(0.1))
    refused(model, "Sqrt", "unsupported-type", "f64")


def test_a_cast_that_nothing_quantizes_is_refused() -> None:
    model = qdq_model("Cast", [Fed("x", (4,), u8(0.1, 3))], attrs={"to": F16})
    refused(model, "Cast", "output-not-quantized")


def test_a_cast_of_reals_to_integers_names_the_quantizer_to_use() -> None:
    build = Builder()
    x = build.operand(Fed("x", (2, 3)), 0)
    build.output(build.node("Cast", [x], to=onnx.TensorProto.UINT8), np.uint8)
    code, detail = refusal_of(build.model(), "Cast")
    assert code == "unsupported-type"
    assert detail.startswith("'x' is cast from f32 to u8: put a QuantizeLinear")
