"""qnn.multiply against the plain model, onnxruntime, and the literal QDQ model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import intonnx
from intonnx.ir.ops.lut import Lut
from intonnx.ir.ops.multiply import Multiply
from intonnx.ir.types import DType, QuantParams, TensorType, plain, quantized
from support import bigint, strategies
from support.models import (
    Array,
    Builder,
    Fed,
    Held,
    Params,
    qdq_model,
    qoperator_model,
    s8,
    s16,
    u8,
)
from support.runtime import run_onnxruntime
from support.strategies import BinaryCase
from support.wings import apart, check_model, refusal_of

RNG = np.random.default_rng(0)
ALL = np.arange(256, dtype=np.uint8)
OUT = QuantParams(storage=DType.U8, scale=0.5, zero_point=1)
CODES = quantized(OUT, (3,))


def fed(case: BinaryCase) -> tuple[list[Fed], dict[str, Array]]:
    sides = [
        Fed("a", case.a.shape, case.a_params, quantized=True),
        Fed("b", case.b.shape, case.b_params, quantized=True),
    ]
    return sides, {"a": case.a, "b": case.b}


def test_c1_needs_codes_of_one_real_type() -> None:
    reals = plain(DType.F32, (3,))
    half = quantized(OUT.model_copy(update={"expressed": DType.F16}), (3,))
    pairs: list[tuple[TensorType, TensorType]] = [(reals, reals), (CODES, half), (half, reals)]
    for pair in pairs:
        with pytest.raises(intonnx.TypeFailure, match="C1"):
            Multiply(out=OUT).infer(pair)


def test_c2_refuses_shapes_that_do_not_broadcast() -> None:
    with pytest.raises(intonnx.TypeFailure, match="C2"):
        Multiply(out=OUT).infer((CODES, CODES.with_shape((2,))))


def test_c3_the_result_has_one_scale() -> None:
    several = QuantParams(storage=DType.U8, scale=np.ones(3), zero_point=np.zeros(3), axis=0)
    with pytest.raises(intonnx.TypeFailure, match="C3"):
        Multiply(out=several).infer((CODES, CODES))


@given(strategies.binary_cases())
def test_multiply_is_the_qlinear_kernel(case: BinaryCase) -> None:
    sides, inputs = fed(case)
    graph = intonnx.import_model(qdq_model("Mul", sides, out=case.out))
    (sa, za), (sb, zb), (sy, zy) = (
        (p.scale_array, p.zero_array[()]) for p in (case.a_params, case.b_params, case.out)
    )
    wanted = bigint.qlinear_mul(case.a, sa, za, case.b, sb, zb, sy, zy)
    np.testing.assert_array_equal(intonnx.compile(graph).run(inputs)["y"], wanted)


@given(strategies.binary_cases(dtype=np.uint8))
@settings(max_examples=30)
def test_every_pair_of_codes(case: BinaryCase) -> None:
    case = BinaryCase(ALL[:, None], ALL, case.a_params, case.b_params, case.out)
    sides, inputs = fed(case)
    check_model(qdq_model("Mul", sides, out=case.out), inputs)


@given(strategies.binary_cases())
@settings(max_examples=30)
def test_multiply_through_every_wing(case: BinaryCase) -> None:
    sides, inputs = fed(case)
    check_model(qdq_model("Mul", sides, out=case.out), inputs)


@given(strategies.binary_cases(mixed=True))
@settings(max_examples=40)
def test_mixed_and_16_bit_operands_are_literal(case: BinaryCase) -> None:
    kinds = {np.dtype(p.dtype) for p in (case.a_params, case.b_params, case.out)}
    one_kind = len(kinds) == 1 and kinds.pop().itemsize == 1
    sides, inputs = fed(case)
    model = qdq_model("Mul", sides, out=case.out)
    check_model(model, inputs, quanta=1 if one_kind else 0, kernel=False)


@pytest.mark.parametrize("shape", [(), (1,), (1, 1), (4,), (3, 1), (2, 3, 4), (1, 2, 3, 4)])
@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("held", [u8(0.031, 17), s8(0.031, 17), s16(0.0007, 3), None])
def test_a_constant_operand(shape: tuple[int, ...], first: bool, held: Params | None) -> None:
    value = RNG.integers(0, 128, shape)
    constant = Held(value.astype(np.float32) / 13) if held is None else Held(value, held)
    sides = [Fed("x", (2, 3, 4), u8(0.02, 114), quantized=True), constant]
    model = qdq_model("Mul", sides[::-1] if first else sides, out=u8(0.05, 90))
    x = RNG.integers(0, 256, (2, 3, 4)).astype(np.uint8)
    kernel = held is not None and np.dtype(held.dtype) == np.uint8
    check_model(model, {"x": x}, quanta=int(kernel), kernel=kernel)


def test_a_gate_of_one_value_a_channel() -> None:
    sides = [
        Fed("x", (2, 8, 5, 5), u8(0.02, 3)),
        Fed("gate", (2, 8, 1, 1), u8(1 / 256, 0)),
    ]
    model = qdq_model("Mul", sides, out=u8(0.015, 5))
    inputs = {
        "x": RNG.standard_normal((2, 8, 5, 5)).astype(np.float32),
        "gate": RNG.random((2, 8, 1, 1)).astype(np.float32),
    }
    check_model(model, inputs)


def test_a_square() -> None:
    build = Builder()
    x = build.operand(Fed("x", (256,), s8(0.1, 3), quantized=True), 0)
    build.output(build.quantize(build.node("Mul", [x, x]), s8(0.75, -128), "y"), np.int8)
    check_model(build.model(), {"x": ALL.view(np.int8)})


def test_silu_with_one_quantizer_at_the_end_is_a_table() -> None:
    build = Builder()
    x = build.operand(Fed("x", (256,), u8(0.05, 128), quantized=True), 0)
    real = build.node("Mul", [x, build.node("Sigmoid", [x])])
    build.output(build.quantize(real, u8(0.03, 10), "y"), np.uint8)
    graph = check_model(build.model(), {"x": ALL}, quanta=0)
    assert isinstance(graph.nodes[-1].op, Lut)


def test_a_dequantized_scalar_stays_a_product() -> None:
    sides = [Fed("x", (256,), u8(0.02, 114), quantized=True), Held(np.uint8(77), u8(0.01, 3))]
    graph = check_model(qdq_model("Mul", sides, out=u8(0.01, 90)), {"x": ALL})
    assert isinstance(graph.nodes[-1].op, Multiply)


@pytest.mark.parametrize(
    "scales", [(1e-20, 1e-20, 1e-36), (1e-30, 1e-30, 1.0), (1e20, 1e20, 1.0), (300.0, 300.0, 1.0)]
)
def test_extreme_scales_stay_literal(scales: tuple[float, float, float]) -> None:
    sides = [
        Fed("a", (256, 1), u8(scales[0], 114), quantized=True),
        Fed("b", (256,), u8(scales[1], 7), quantized=True),
    ]
    model = qdq_model("Mul", sides, out=u8(scales[2], 90))
    check_model(model, {"a": ALL[:, None], "b": ALL}, quanta=0, kernel=False)


def test_a_product_with_an_accumulator() -> None:
    build = Builder()
    x = build.operand(Fed("x", (1, 4, 6, 6), u8(0.02, 9), quantized=True), 0)
    weights = Held(RNG.integers(-127, 128, (4, 4, 1, 1)), s8(0.01))
    conv = build.node("Conv", [x, build.operand(weights, 1)])
    build.output(build.quantize(build.node("Mul", [x, conv]), s8(0.05, 3), "y"), np.int8)
    inputs = {"x": RNG.integers(0, 256, (1, 4, 6, 6)).astype(np.uint8)}
    check_model(build.model(), inputs, literal_quanta=1, kernel=False)


def qlinear_inputs(case: BinaryCase) -> list[Any]:
    inputs: list[Any] = []
    for name, side in (("a", case.a_params), ("b", case.b_params), ("", case.out)):
        codes = case.a if name == "a" else case.b
        inputs += [Fed(name, codes.shape, dtype=codes.dtype)] if name else []
        inputs += [side.scale_array, side.zero_array[()]]
    return inputs


@given(strategies.binary_cases())
@settings(max_examples=30)
def test_qlinear_mul_imports_bit_for_bit(case: BinaryCase) -> None:
    model = qoperator_model("QLinearMul", qlinear_inputs(case), case.a.dtype)
    check_model(model, {"a": case.a, "b": case.b}, quanta=0, literal_quanta=1)


def test_symbolic_shapes() -> None:
    sides = [
        Fed("a", (3, "N"), u8(0.02, 114), quantized=True),
        Fed("b", (3, "M"), u8(0.03, 7), quantized=True),
    ]
    graph = intonnx.import_model(qdq_model("Mul", sides, out=u8(0.01, 90)))
    exe, exported = intonnx.compile(graph), intonnx.to_onnx(graph)
    for n, m in ((256, 1), (1, 256), (256, 256), (0, 1)):
        inputs = {
            "a": RNG.integers(0, 256, (3, n)).astype(np.uint8),
            "b": RNG.integers(0, 256, (3, m)).astype(np.uint8),
        }
        apart(exe.run(inputs), run_onnxruntime(exported, inputs, optimized=False), 0)


def test_a_float_operand_is_refused_and_nothing_is_quantized() -> None:
    sides = [Fed("a", (4,), u8(0.1, 3)), Fed("b", (4,))]
    code, detail = refusal_of(qdq_model("Mul", sides, out=u8(0.2)), "Mul")
    assert code == "input-not-quantized"
    assert "'b' arrives as float" in detail


def test_two_float_chains_that_meet_are_refused() -> None:
    build = Builder()
    a, b = (build.operand(Fed(name, (4,), u8(0.1, 3)), i) for i, name in enumerate("ab"))
    real = build.node("Mul", [build.node("Sigmoid", [a]), build.node("Tanh", [b])])
    build.output(build.quantize(real, u8(0.2), "y"), np.uint8)
    assert refusal_of(build.model(), "Mul")[0] == "input-not-quantized"


def test_a_result_without_a_quantizer_is_refused() -> None:
    sides = [Fed("a", (4,), u8(0.1, 3)), Fed("b", (4,), u8(0.1, 3))]
    assert refusal_of(qdq_model("Mul", sides), "Mul")[0] == "output-not-quantized"
