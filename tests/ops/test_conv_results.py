"""Biases of convolutions, and what their results are read as, through every wing."""

from __future__ import annotations

import numpy as np
import pytest

import intonnx
from intonnx.ir.ops.conv import Conv
from support.models import Builder, Fed, Held, Params, qdq_model, run_inputs, s8, s16, s32, u8, u16
from support.products import PER_CHANNEL, check_product, ends
from support.runtime import run_onnxruntime

RNG = np.random.default_rng(0)
U8, S8 = np.uint8, np.int8


# -- bias -----------------------------------------------------------------------------------------

EXACT = np.float32(0.02) * np.float32(0.01)


@pytest.mark.parametrize(
    "bias",
    [
        Held(np.linspace(-3, 3, 6, dtype=np.float32)),
        Held(np.arange(6) * 999, s32(EXACT)),
        Held(np.arange(6) * 999, s32(EXACT, None)),
        Held(np.arange(6) * 999, s32([EXACT], [0])),
        Held(np.arange(6) * 999, s32([EXACT] * 6, axis=0)),
        Held(np.arange(6) * 999, s32(EXACT * np.float32(1.005))),
        Held(np.arange(6) * 999, s32(3 * EXACT)),
        Held(np.arange(6) * 999, s32(EXACT, 4000)),
        Held(np.arange(6) * 20, s8(0.02)),
        Held(np.arange(6) * 20, u8(0.02, 99)),
        Held(np.linspace(-3, 3, 6).astype(np.float32), None),
    ],
)
@pytest.mark.parametrize("per_channel", [False, True])
def test_biases_are_what_the_model_says(bias: Held, per_channel: bool) -> None:
    weight = s8(PER_CHANNEL, axis=0) if per_channel else s8(0.01)
    operands = [
        Fed("x", (1, 4, 6, 6), u8(0.02, 114)),
        Held(ends(RNG, (6, 4, 3, 3), S8), weight),
        bias,
    ]
    model = qdq_model("Conv", operands, out=u8(0.1, 100))
    check_product(model, run_inputs(model))


def test_an_exact_bias_is_used_as_it_is() -> None:
    codes = RNG.integers(-(2**30), 2**30, 6)
    operands = [
        Fed("x", (1, 4, 6, 6), u8(0.02, 114)),
        Held(ends(RNG, (6, 4, 3, 3), S8), s8(0.01)),
        Held(codes, s32(EXACT)),
    ]
    graph = intonnx.import_model(qdq_model("Conv", operands, out=u8(0.1, 100)))
    (found,) = [array for array in graph.constants.values() if array.dtype == np.int32]
    np.testing.assert_array_equal(found, codes)


def test_one_bias_for_two_convolutions_with_other_scales() -> None:
    build = Builder()
    x = build.operand(Fed("x", (1, 4, 6, 6), u8(0.02, 114)), 0)
    bias = build.operand(Held(np.arange(6) * 999, s32(EXACT)), 1)
    for i, scale in enumerate((0.01, 0.03)):
        w = build.operand(Held(ends(RNG, (6, 4, 3, 3), S8), s8(scale)), 2 + i)
        result = build.node("Conv", [x, w, bias])
        build.output(build.quantize(result, u8(0.1, 100), f"y{i}"), U8)
    model = build.model()
    check_product(model, run_inputs(model))


# -- results --------------------------------------------------------------------------------------


@pytest.mark.parametrize("activation", [u8(0.02, 114), s8(0.02, -3)])
@pytest.mark.parametrize("weight", [s8(0.01), s8(PER_CHANNEL, axis=0), u8(0.01, 131)])
@pytest.mark.parametrize("bias", [False, True])
def test_without_an_output_quantizer_the_result_is_the_scaled_sum(
    activation: Params, weight: Params, bias: bool
) -> None:
    scale = np.float32(0.02) * weight.scale_array
    c = Held(RNG.integers(-999, 999, 6), s32(scale, axis=0 if scale.ndim else None))
    codes = ends(RNG, (6, 4, 3, 3), np.dtype(weight.dtype).type)
    operands = [Fed("x", (1, 4, 6, 6), activation), Held(codes, weight), c if bias else None]
    model = qdq_model("Conv", operands)
    graph = check_product(model, run_inputs(model))
    kernels = {node.op_type for node in intonnx.to_onnx(graph).graph.node}
    assert "ConvInteger" in kernels
    assert "Conv" not in kernels


@pytest.mark.parametrize("out", [s8(0.1, -7), u16(0.001, 30000), s16(0.001)])
def test_another_storage_type_for_the_result(out: Params) -> None:
    operands = [
        Fed("x", (1, 4, 6, 6), u8(0.02, 114)),
        Held(ends(RNG, (6, 4, 3, 3), S8), s8(PER_CHANNEL, axis=0)),
        Held(np.linspace(-3, 3, 6, dtype=np.float32)),
    ]
    model = qdq_model("Conv", operands, out=out)
    check_product(model, run_inputs(model))


def test_a_result_quantized_twice_and_read_as_float() -> None:
    build = Builder()
    x = build.operand(Fed("x", (1, 4, 6, 6), u8(0.02, 114)), 0)
    weight = u8(PER_CHANNEL, np.arange(100, 160, 10), axis=0)
    w = build.operand(Held(RNG.integers(90, 170, (6, 4, 3, 3)), weight), 1)
    value = build.node("Conv", [x, w])
    build.output(build.quantize(value, u8(0.1, 100), "y"), U8)
    build.output(build.quantize(value, s8(0.3, 5), "z"), S8)
    build.output(build.node("Identity", [value], name="real"), np.float32)
    model = build.model()
    graph = check_product(model, run_inputs(model))
    assert sum(isinstance(node.op, Conv) for node in graph.nodes) == 1


@pytest.mark.parametrize("zero", [0, 100, 255])
def test_conv_relu_and_clip(zero: int) -> None:
    for after in (("Relu", []), ("Clip", [0.0, 6.0])):
        build = Builder()
        x = build.operand(Fed("x", (1, 4, 6, 6), u8(0.02, 114)), 0)
        w = build.operand(Held(ends(RNG, (6, 4, 3, 3), S8), s8(PER_CHANNEL, axis=0)), 1)
        bounds = [build.constant(f"b{i}", np.float32(v)) for i, v in enumerate(after[1])]
        value = build.node(after[0], [build.node("Conv", [x, w]), *bounds])
        build.output(build.quantize(value, u8(0.05, zero), "y"), U8)
        model = build.model()
        check_product(model, run_inputs(model))


@pytest.mark.parametrize("bias", [False, True])
def test_sums_of_weights_with_unequal_zero_points(bias: bool) -> None:
    """ConvInteger takes one zero point; codes over the whole range cannot be moved to one."""
    codes = np.array([[[-128, 127]], [[-128, -128]], [[127, -100]]], np.int8)
    weights = s8([0.007, 0.017, 0.011], [-91, -72, 116], axis=0)
    build = Builder(13)
    operands = [build.operand(Fed("x", (2, 1, 6), u8(0.05, 100)), 0)]
    operands.append(build.operand(Held(codes, weights), 1))
    if bias:
        scale = np.float32(0.05) * np.float32([0.007, 0.017, 0.011])
        operands.append(build.operand(Held(np.array([433, -159, 683]), s32(scale, 0, axis=0)), 2))
    build.output(build.node("Conv", operands, name="y"), np.float32)
    build.output(build.quantize("y", u8(0.1, 128), "codes"), np.uint8)
    model = build.model()
    x = run_inputs(model)
    graph = intonnx.import_model(model)
    ours = intonnx.compile(graph).run(x)["y"]
    np.testing.assert_allclose(ours, run_onnxruntime(model, x, optimized=False)["y"], atol=1e-4)
    for optimized in (False, True):
        theirs = run_onnxruntime(intonnx.to_onnx(graph), x, optimized=optimized, exact=False)["y"]
        np.testing.assert_array_equal(theirs, ours)
