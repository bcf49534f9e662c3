"""qnn.conv1d, 2d and 3d between quantizers, against onnxruntime and the literal QDQ model."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import intonnx
from intonnx.ir.ops.conv import Conv, Conv1d, Conv2d, Conv3d
from support import strategies
from support.models import (
    Array,
    Builder,
    Fed,
    Held,
    Params,
    qdq_model,
    qoperator_model,
    run_inputs,
    s8,
    s16,
    s32,
    u8,
    u16,
)
from support.products import PER_CHANNEL, RUNTIMES, check_product, ends
from support.runtime import run_onnxruntime
from support.strategies import ConvCase
from support.wings import apart, refusal_of

RNG = np.random.default_rng(0)
U8, S8 = np.uint8, np.int8


# -- between quantizers ---------------------------------------------------------------------------


@settings(max_examples=40)
@given(case=strategies.conv_cases(), quantized_input=st.booleans())
def test_any_conv_is_the_literal_one_within_a_quantum(
    case: ConvCase, quantized_input: bool
) -> None:
    fed = Fed("x", case.x.shape, case.x_params, quantized=quantized_input)
    scale = np.float32(case.x_params.scale) * case.w_params.scale_array
    bias = None
    if case.bias is not None:
        bias = Held(case.bias, s32(scale, axis=0 if scale.ndim else None))
    operands = [fed, Held(case.w, case.w_params), bias]
    model = qdq_model("Conv", operands, out=case.out, attrs=case.geometry)
    check_product(model, {"x": case.x} if quantized_input else run_inputs(model))


@pytest.mark.parametrize("auto_pad", ["SAME_UPPER", "SAME_LOWER", "VALID"])
@pytest.mark.parametrize("strides", [[1, 1], [2, 3]])
@pytest.mark.parametrize("kernel", [(3, 3), (2, 4), (1, 1)])
def test_auto_pad(auto_pad: str, strides: list[int], kernel: tuple[int, int]) -> None:
    for shape in ((1, 3, 7, 8), (1, 3, "h", 8)):
        operands = [
            Fed("x", shape, u8(0.02, 114)),
            Held(ends(RNG, (4, 3, *kernel), S8), s8(0.01)),
        ]
        attrs = {"auto_pad": auto_pad, "strides": strides}
        model = qdq_model("Conv", operands, out=u8(0.2, 100), attrs=attrs)
        inputs = {"x": (RNG.standard_normal((1, 3, 7, 8)) * 2).astype(np.float32)}
        check_product(model, inputs)


@pytest.mark.parametrize(
    "weight",
    [
        s8(0.01),
        s8(0.01, None),
        s8(0.01, 77),
        u8(0.01, 131),
        u8(0.01, 255),
        s8(PER_CHANNEL, axis=0),
        u8(PER_CHANNEL, 128, axis=0),
        s8(PER_CHANNEL, np.arange(-3, 3), axis=-4),
        u8(PER_CHANNEL, np.arange(100, 160, 10), axis=0),
    ],
)
@pytest.mark.parametrize("activation", [u8(0.02, 114), u8(0.02, 255), s8(0.02, -3), s8(0.02, -128)])
@pytest.mark.parametrize("geometry", ["plain", "depthwise", "multiplier", "pointwise"])
def test_weights_and_geometries(weight: Params, activation: Params, geometry: str) -> None:
    shape, attrs = {
        "plain": ((6, 4, 3, 3), {"pads": [1, 0, 2, 1]}),
        "depthwise": ((6, 1, 3, 3), {"group": 6, "strides": [2, 1]}),
        "multiplier": ((6, 1, 3, 2), {"group": 3, "dilations": [2, 1]}),
        "pointwise": ((6, 5, 1, 1), {}),
    }[geometry]
    channels = shape[1] * int(np.asarray(attrs.get("group", 1)))
    # Codes near the zero point: real weights are; those at the ends cannot share one zero point.
    zeros = np.broadcast_to(weight.zero_array, (6,)).reshape(6, 1, 1, 1).astype(int)
    info = np.iinfo(weight.dtype)
    codes = np.clip(zeros + RNG.integers(-90, 90, shape), info.min, info.max)
    model = qdq_model(
        "Conv",
        [
            Fed("x", (2, channels, 6, 7), activation),
            Held(codes, weight),
            Held(RNG.standard_normal(6).astype(np.float32)),
        ],
        out=Params(activation.dtype, 0.1, activation.zero_point),
        attrs=attrs,
    )
    graph = check_product(model, run_inputs(model))
    assert "QLinearConv" in {node.op_type for node in intonnx.to_onnx(graph).graph.node}


def test_zero_points_too_far_apart_for_one_are_literal_in_onnx() -> None:
    zeros = np.array([0, 255])
    codes = np.array([[255, 0], [0, 255]]).reshape(2, 2, 1, 1)
    operands = [
        Fed("x", (1, 2, 4, 4), u8(0.02, 9)),
        Held(codes, u8(np.array([0.01, 0.02]), zeros, axis=0)),
    ]
    model = qdq_model("Conv", operands, out=u8(0.2, 100))
    graph = check_product(model, run_inputs(model), exact=False)
    assert "Conv" in {node.op_type for node in intonnx.to_onnx(graph).graph.node}


@pytest.mark.parametrize(("rank", "cls"), [(1, Conv1d), (2, Conv2d), (3, Conv3d)])
@pytest.mark.parametrize("opset", [10, 13, 22])
def test_ranks_and_opsets(rank: int, cls: type[Conv], opset: int) -> None:
    operands = [
        Fed("x", (2, 3, *[5] * rank), u8(0.02, 114)),
        Held(ends(RNG, (4, 3, *[2] * rank), S8), s8(0.01)),
        Held(np.arange(4), s32(0.02 * 0.01)),
    ]
    model = qdq_model("Conv", operands, out=u8(0.2, 100), opset=opset)
    graph = check_product(model, run_inputs(model))
    assert any(isinstance(node.op, cls) for node in graph.nodes)


def test_two_activations() -> None:
    fed = [Fed("x", (1, 3, 5, 5), u8(0.02, 9)), Fed("w", (2, 3, 2, 2), u8(0.02, 200))]
    model = qdq_model("Conv", fed, out=u8(0.1, 7))
    check_product(model, run_inputs(model))


# -- types without kernels ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("x", "w"), [(u16(0.001, 30000), s8(0.01)), (s16(0.001), s8(0.01)), (s16(0.001), s16(0.001))]
)
def test_sixteen_bits_are_integer_here_and_qdq_in_onnx(x: Params, w: Params) -> None:
    codes = ends(RNG, (6, 4, 3, 3), np.dtype(w.dtype).type)
    operands = [Fed("x", (1, 4, 6, 6), x), Held(codes, w)]
    model = qdq_model("Conv", operands, out=Params(x.dtype, 0.02, 5))
    inputs = {"x": np.asarray(RNG.uniform(-30, 30, (1, 4, 6, 6)), np.float32)}
    check_product(model, inputs, exact=False, optimized=False)


@pytest.mark.parametrize("element", [onnx.TensorProto.INT4, onnx.TensorProto.UINT4])
def test_four_bit_weights_take_a_byte_in_integer_operators(element: int) -> None:
    build = Builder()
    x = build.operand(Fed("x", (1, 4, 6, 6), u8(0.02, 9)), 0)
    low = -8 if element == onnx.TensorProto.INT4 else 0
    codes = RNG.integers(low, low + 16, (6, 4, 3, 3))
    build.constants.append(onnx.helper.make_tensor("w", element, codes.shape, codes.ravel()))
    build.constants.append(onnx.helper.make_tensor("wz", element, (), [3]))
    w = build.node("DequantizeLinear", ["w", build.constant("ws", np.float32(0.1)), "wz"])
    build.output(build.quantize(build.node("Conv", [x, w]), u8(0.2, 100), "y"), U8)
    model = build.model()
    graph = check_product(model, run_inputs(model))
    assert "QLinearConv" in {node.op_type for node in intonnx.to_onnx(graph).graph.node}


def half_model(*, quantized_result: bool) -> onnx.ModelProto:
    """DQ -> Conv (-> Q) with scales and real values of float16."""
    build = Builder()
    x = build.feed("x", (1, 4, 6, 6), U8)
    half = [build.constant(f"s{i}", np.float16(s)) for i, s in enumerate((0.02, 0.01, 0.1))]
    real = build.node("DequantizeLinear", [x, half[0], build.constant("zx", U8(114))])
    weights = build.constant("w", ends(RNG, (6, 4, 3, 3), S8))
    w = build.node("DequantizeLinear", [weights, half[1]])
    bias = build.constant("b", np.linspace(-3, 3, 6).astype(np.float16))
    y = build.node("Conv", [real, w, bias], name="real")
    if quantized_result:
        zero = build.constant("zy", U8(99))
        build.output(build.node("QuantizeLinear", [y, half[2], zero], name="y"), U8)
    else:
        build.output(build.node("Identity", [y], name="y"), np.float16)
    return build.model()


@pytest.mark.parametrize("quantized_result", [True, False])
def test_float16_scales(quantized_result: bool) -> None:
    model = half_model(quantized_result=quantized_result)
    check_product(model, {"x": RNG.integers(90, 140, (1, 4, 6, 6)).astype(U8)})


# -- refusals -------------------------------------------------------------------------------------


def model_of(x: Any, w: Any, c: Any = None) -> onnx.ModelProto:
    return qdq_model("Conv", [x, w, c], out=u8(0.05, 7))


FED = Fed("x", (1, 6, 5, 5), u8(0.02, 9))
ONES = np.ones((6, 6, 3, 3))


@pytest.mark.parametrize(
    ("model", "code"),
    [
        (model_of(Fed("x", (1, 6, 5, 5)), Held(ONES, s8(0.01))), "input-not-quantized"),
        (model_of(FED, Held(ONES.astype(np.float32))), "input-not-quantized"),
        (model_of(Fed("x", (1, 6, 5, 5), u8(np.full(6, 0.1), axis=1)), Held(ONES, s8(0.01))),
         "per-axis-input"),
        (model_of(FED, Held(ONES, s8(np.full(6, 0.1), axis=1))), "per-axis-input"),
        (model_of(FED, Held(ONES, s8(0.01)), Fed("c", (6,))), "runtime-constant"),
        (qdq_model("Conv", [FED, Held(ONES, s8(0.01)), Held(np.full(6, 1e9, np.float32))]),
         "bias-out-of-range"),
        (model_of(Fed("x", (1, 6, 5, 5), u8(1e-30, 9)), Held(ONES, s8(1e-30))),
         "unsupported-type"),
    ],
)  # fmt: skip
def test_refusals(model: onnx.ModelProto, code: str) -> None:
    found, detail = refusal_of(model, "Conv")
    assert found == code
    assert "'" in detail


def test_blocked_weights_are_refused() -> None:
    build = Builder()
    x = build.operand(FED, 0)
    scales = np.linspace(0.05, 0.15, 108, dtype=np.float32).reshape(2, 6, 3, 3)
    scale = build.constant("scale", scales)
    w = build.node("DequantizeLinear", [build.constant("w", ONES.astype(S8)), scale],
                   axis=0, block_size=3)  # fmt: skip
    build.output(build.quantize(build.node("Conv", [x, w]), u8(0.05, 7), "y"), U8)
    assert refusal_of(build.model(), "Conv")[0] == "blocked-input"


@pytest.mark.parametrize("weights", [s8(50.0), s8(np.linspace(40, 60, 6), axis=0)])
@pytest.mark.parametrize("held", [s32(0.01), None])
def test_a_bias_finer_than_the_accumulator_is_added_behind_it(
    weights: Params, held: Params | None
) -> None:
    """Half a step of this accumulator is 50 steps of the result: rounding the bias would show."""
    bias = Held(np.arange(-300, 300, 100), held)
    if held is None:
        bias = Held(np.linspace(-3, 3, 6, dtype=np.float32))
    few = np.zeros((6, 6, 3, 3))
    few[:, 2, 1, 1] = 1
    model = qdq_model("Conv", [FED, Held(few, weights), bias], out=u8(0.02, 120))
    codes = RNG.integers(8, 11, (1, 6, 5, 5))
    check_product(model, {"x": ((codes - 9) * 0.02).astype(np.float32)})


def test_a_bias_beyond_32_bits_is_added_behind_the_sums() -> None:
    far = Held(np.full(6, 1e9, np.float32))
    model = qdq_model("Conv", [FED, Held(ONES, s8(0.01)), far], out=u8(0.05, 7))
    graph = check_product(model, run_inputs(model))
    intonnx.compile(graph, numerics="fixed").run(run_inputs(model))


def test_weight_only_convolutions_gain_no_quantization() -> None:
    model = qdq_model("Conv", [Fed("x", (1, 6, 5, 5)), Held(ONES, s8(0.01))])
    graph = intonnx.import_model(model)
    assert not any(node.op.name == "qnn.quantize" for node in graph.nodes)


# -- hazards --------------------------------------------------------------------------------------


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_extreme_codes_are_exact_on_cpus_without_vnni(groups: int) -> None:
    """The export runs as it is: no help from the test's own `exact_model`."""
    x, w = np.full((1, 4, 5, 5), 255, U8), np.full((4, 4 // groups, 3, 3), 127, S8)
    operands = [Fed("x", x.shape, u8(0.02), quantized=True), Held(w, s8(0.01))]
    model = qdq_model("Conv", operands, out=u8(4.0), attrs={"group": groups})
    graph = intonnx.import_model(model)
    found = intonnx.compile(graph).run({"x": x})
    expected = min(255, round(255 * 127 * 36 / groups * 0.02 * 0.01 / 4))
    assert set(found["y"].flat) == {expected}
    for runtime in RUNTIMES:
        exported = intonnx.to_onnx(graph, runtime=runtime)
        apart(run_onnxruntime(exported, {"x": x}, optimized=False, exact=False), found, 0)


def test_large_reductions_are_exact() -> None:
    """1,152 and 4,608 products of extreme codes: parts of float32, then float64."""
    for channels in (128, 512):
        x, w = ends(RNG, (1, channels, 4, 4), U8), ends(RNG, (3, channels, 3, 3), S8)
        parts = [Fed("x", x.shape, dtype=U8), w, U8(255), S8(-128)]
        model = qoperator_model("ConvInteger", parts, np.int32)
        found = intonnx.compile(intonnx.import_model(model)).run({"x": x})
        windows = np.lib.stride_tricks.sliding_window_view(x.astype(np.int64) - 255, (3, 3), (2, 3))
        wanted = np.einsum("ncijhw,ochw->noij", windows, w.astype(np.int64) + 128)
        apart(found, {"y": wanted.astype(np.int32)}, 0)


def test_batches_larger_than_one_block_of_windows() -> None:
    x: Array = ends(RNG, (3, 16, 200, 40), U8)
    w = ends(RNG, (2, 16, 3, 3), S8)
    model = qoperator_model(
        "ConvInteger", [Fed("x", x.shape, dtype=U8), w, U8(100)], np.int32, attrs={"pads": [1] * 4}
    )
    found = intonnx.compile(intonnx.import_model(model)).run({"x": x})
    apart(found, run_onnxruntime(model, {"x": x}, optimized=False), 0)
