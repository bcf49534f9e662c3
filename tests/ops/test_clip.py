"""qnn.clip: Relu and Clip on codes, held against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import intonnx
from intonnx.ir.errors import TypeFailure
from intonnx.ir.ops.clip import Clip
from intonnx.ir.types import DType, QuantParams, TensorType, plain, quantized
from support import strategies
from support.models import Builder, Fed, Held, Operand, Params, qdq_model, run_inputs, s8, u8
from support.runtime import run_onnxruntime
from support.wings import check_model, refusal_of

U8 = QuantParams(storage=DType.U8, scale=0.5, zero_point=3)
PER_AXIS = QuantParams(storage=DType.U8, scale=[1, 2], zero_point=[0, 0], axis=0)


@pytest.mark.parametrize(
    ("constraint", "x", "low", "high"),
    [
        ("C1", plain(DType.F32, [2]), 0, 1),
        ("C1", quantized(PER_AXIS, [2]), 0, 1),
        ("C2", quantized(U8, [2]), 5, 4),
        ("C2", quantized(U8, [2]), -1, 4),
        ("C2", quantized(U8, [2]), 0, 256),
    ],
)
def test_constraints(constraint: str, x: TensorType, low: int, high: int) -> None:
    with pytest.raises(TypeFailure) as failure:
        Clip(low=low, high=high).infer([x])
    assert failure.value.constraint == constraint


bounds = st.none() | st.sampled_from([0.0, 6.0, -0.5]) | st.floats(-1e3, 1e3)


@settings(max_examples=60)
@given(strategies.params(wide=True), st.booleans(), st.booleans(), st.tuples(bounds, bounds))
def test_dq_clip_q_is_exact(
    side: Params, fed_codes: bool, equal: bool, limits: tuple[float | None, float | None]
) -> None:
    out = side if equal else Params(side.dtype, float(np.float32(side.scale * 1.5)), 7)
    operands: list[Operand] = [Fed("x", (3, 40), side, quantized=fed_codes)]
    operands += [None if v is None else Held(np.float32(v)) for v in limits]
    # onnxruntime merges Q -> DQ -> Q -> DQ wrongly when it optimizes; codes that are fed it keeps.
    model = qdq_model("Clip", operands, out=out)
    check_model(model, run_inputs(model), quanta=0, kernel=fed_codes and equal)


@settings(max_examples=40)
@given(strategies.params(wide=True), st.booleans())
def test_dq_relu_q_is_exact(side: Params, fed_codes: bool) -> None:
    model = qdq_model("Relu", [Fed("x", (3, 40), side, quantized=fed_codes)], out=side)
    check_model(model, run_inputs(model), quanta=0)


@pytest.mark.parametrize("side", [u8(1.0, 3), s8(1.0, 3)])
@pytest.mark.parametrize("limits", [(5, 20), (20, None), (None, 5), (20, 5)])
def test_between_quantizer_and_dequantizer_the_bounds_are_codes(
    side: Params, limits: tuple[int | None, int | None]
) -> None:
    build = Builder(18)
    codes = build.quantize(build.feed("x", (2, 40), np.float32), side)
    names = [
        "" if v is None else build.constant(f"bound{i}", np.dtype(side.dtype).type(v))
        for i, v in enumerate(limits)
    ]
    build.output(build.dequantize(build.node("Clip", [codes, *names]), side, "y"), np.float32)
    x = (np.arange(80, dtype=np.float32) - 40).reshape(2, 40)
    check_model(build.model(), {"x": x})


def test_between_quantizer_and_dequantizer_relu_is_by_code_zero() -> None:
    build = Builder(18)
    codes = build.quantize(build.feed("x", (2, 40), np.float32), s8(1.0, 3))
    build.output(build.dequantize(build.node("Relu", [codes]), s8(1.0, 3), "y"), np.float32)
    x = (np.arange(80, dtype=np.float32) - 40).reshape(2, 40)
    check_model(build.model(), {"x": x})


@pytest.mark.parametrize("opset", [10, 11, 12, 13, 21])
def test_every_opset(opset: int) -> None:
    operands: list[Operand] = [Fed("x", (3, 40), s8(0.05, -7))]
    attrs: dict[str, Any] = {"min": 0.0, "max": 3.0} if opset < 11 else {}
    operands += [] if opset < 11 else [Held(np.float32(0)), Held(np.float32(3))]
    model = qdq_model("Clip", operands, out=s8(0.05, -7), attrs=attrs, opset=opset)
    check_model(model, run_inputs(model), quanta=0)


def test_refuses_a_bound_off_the_grid_without_a_quantizer() -> None:
    operands = [Fed("x", (3, 4), u8(0.25, 14)), Held(np.float32(0.3))]
    assert refusal_of(qdq_model("Clip", operands), "Clip")[0] == "output-not-quantized"


def test_refuses_a_bound_computed_at_run_time() -> None:
    operands = [Fed("x", (3, 4), u8(0.25, 14)), Fed("low", ())]
    _, detail = refusal_of(qdq_model("Clip", operands, out=u8(0.25, 14)), "Clip")
    assert "'low'" in detail


def test_refuses_a_scale_for_each_channel() -> None:
    x = Fed("x", (2, 4), u8([0.1, 0.2], [1, 2], axis=0))
    assert refusal_of(qdq_model("Relu", [x]), "Relu")[0] == "per-axis-input"


@pytest.mark.parametrize("form", ["qlinear", "qdq"])
@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int16, np.int32])
def test_integers_without_parameters_are_clipped_as_they_are(dtype: Any, form: Any) -> None:
    low, high = np.asarray(2, dtype), np.asarray(90, dtype)
    build = Builder(21)
    x = build.node("Identity", [build.feed("x", (2, 6), dtype)])
    bounds = [build.constant("low", low), build.constant("high", high)]
    build.output(build.node("Clip", [x, *bounds], name="y"), dtype)
    model = build.model()
    feeds = run_inputs(model)
    graph = intonnx.import_model(model)
    wanted = np.clip(feeds["x"], low, high)
    np.testing.assert_array_equal(intonnx.compile(graph).run(feeds)["y"], wanted)
    found = run_onnxruntime(intonnx.to_onnx(graph, form=form), feeds, optimized=False)["y"]
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("form", ["qlinear", "qdq"])
def test_sums_that_are_clipped_and_not_quantized(form: Any) -> None:
    weights = Held(np.arange(-6, 6, dtype=np.int8).reshape(3, 4), s8(0.5))
    build = Builder(21)
    operands = [build.operand(Fed("x", (2, 3), u8(0.25, 100)), 0), build.operand(weights, 1)]
    product = build.node("MatMul", operands)
    clipped = build.node("Clip", [product, build.constant("low", np.float32(0))], name="y")
    build.output(clipped, np.float32)
    model = build.model()
    feeds = run_inputs(model)
    graph = intonnx.import_model(model)
    wanted = run_onnxruntime(model, feeds, optimized=False)["y"]
    np.testing.assert_allclose(intonnx.compile(graph).run(feeds)["y"], wanted, rtol=1e-6)
    found = run_onnxruntime(intonnx.to_onnx(graph, form=form), feeds, optimized=False)["y"]
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


@pytest.mark.parametrize("form", ["qlinear", "qdq"])
@pytest.mark.parametrize("scale", [0.02, [0.02, 0.01, 0.03, 0.004]])
@pytest.mark.parametrize("op_type", ["Relu", "Clip"])
def test_a_relu_between_a_convolution_and_a_sum(op_type: str, scale: Any, form: Any) -> None:
    """conv + relu + add + relu: zero is the code 0 of every channel's sums."""
    rng = np.random.default_rng(5)
    build = Builder(21)
    x = build.operand(Fed("x", (1, 4, 5, 5), u8(0.05, 128)), 0)
    codes = rng.integers(-128, 128, (4, 4, 3, 3))
    w = build.operand(Held(codes, s8(scale, 0, None if scale == 0.02 else 0)), 1)
    limits = [build.constant("low", np.float32(0))] if op_type == "Clip" else []
    conv = build.node("Conv", [x, w], pads=[1, 1, 1, 1])
    total = build.node("Add", [build.node(op_type, [conv, *limits]), x])
    build.output(build.quantize(build.node("Relu", [total]), u8(0.3, 40), "y"), np.uint8)
    model = build.model()
    graph = intonnx.import_model(model)
    assert intonnx.coverage(graph).float == 0
    feeds = {"x": rng.normal(0, 3, (1, 4, 5, 5)).astype(np.float32)}
    wanted = run_onnxruntime(model, feeds, optimized=False)["y"]
    ours = intonnx.compile(graph).run(feeds)["y"]
    assert np.abs(ours.astype(int) - wanted).max() <= 1
    found = run_onnxruntime(intonnx.to_onnx(graph, form=form), feeds, optimized=False)["y"]
    assert np.abs(found.astype(int) - ours).max() <= (form == "qdq")


def test_channels_have_no_common_code_for_other_bounds() -> None:
    build = Builder(21)
    x = build.operand(Fed("x", (1, 2, 3, 3), u8(0.05, 128)), 0)
    w = build.operand(Held(np.ones((2, 2, 1, 1)), s8([0.02, 0.01], 0, 0)), 1)
    conv = build.node("Conv", [x, w])
    build.node("Clip", [conv, "", build.constant("high", np.float32(6))], name="y")
    build.output("y", np.float32)
    assert refusal_of(build.model(), "Clip")[0] == "input-not-quantized"


def test_the_end_of_the_storage_range_does_not_limit_wider_sums() -> None:
    build = Builder(21)
    x = build.dequantize(build.feed("x", (1, 2), np.uint16), Params(np.uint16, 1.0, 0))
    w = build.dequantize(build.feed("w", (2, 1), np.uint16), Params(np.uint16, 1.0, 0))
    build.output(build.node("Relu", [build.node("MatMul", [x, w])], name="y"), np.float32)
    graph = intonnx.import_model(build.model())
    assert intonnx.coverage(graph).float == 0
    full = np.full((1, 2), 65535, np.uint16)
    found = intonnx.compile(graph).run({"x": full, "w": full.T})["y"]
    np.testing.assert_array_equal(found, np.float32(2 * 65535**2))
