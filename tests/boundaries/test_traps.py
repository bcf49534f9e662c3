"""Legal graphs that a naive fuser gets wrong: each gives the literal result within one quantum.

The oracle is onnxruntime with optimization off. Where the arithmetic is truly possible on integers
the operator must be integer, else float with the expected reason.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import onnx
import pytest

import intonnx
from support.models import Builder, Params, s8, s32, u8
from support.runtime import run_onnxruntime

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(20)
X = u8(0.05, 128)


class Trap(NamedTuple):
    """A model, its input, the output's scale, and what is expected of one operator."""

    model: onnx.ModelProto
    inputs: dict[str, Array]
    scale: float
    op: str
    code: str = ""
    """The reason for staying float; empty when the operator must be integer."""


def codes(shape: tuple[int, ...], dtype: Any = np.int8) -> Array:
    info = np.iinfo(dtype)
    return RNG.integers(info.min, info.max + 1, shape).astype(dtype)


def reals(*shape: int) -> Array:
    return RNG.normal(0, 2.5, shape).astype(np.float32)


def weights(b: Builder, name: str, value: Array, params: Params) -> str:
    return b.dequantize(b.constant(name, value), params)


def activation(b: Builder, shape: tuple[int, ...], params: Params = X) -> str:
    b.feed("x", shape, np.float32)
    return b.dequantize(b.quantize("x", params), params)


def title(make: Callable[[], Trap]) -> str:
    if isinstance(make, partial):
        return "-".join([make.func.__name__, *make.args])
    return make.__name__


def finish(b: Builder, value: str, params: Params) -> onnx.ModelProto:
    b.output(b.dequantize(b.quantize(value, params), params, "y"), np.float32)
    return b.model()


def gemm(bias: Array, bias_params: Params | None, w: Params | None = None) -> Trap:
    b = Builder(opset=21)
    x = activation(b, (3, 16))
    matrix = weights(b, "w", codes((16, 8)), w or s8(0.02))
    c = b.constant("c", bias) if bias_params is None else weights(b, "c", bias, bias_params)
    model = finish(b, b.node("Gemm", [x, matrix, c]), u8(0.4, 100))
    return Trap(model, {"x": reals(3, 16)}, 0.4, "Gemm")


def conv(w: Params, bias: Array | None = None, bias_params: Params | None = None) -> Trap:
    b = Builder(opset=21)
    x = activation(b, (2, 4, 6, 6))
    operands = [x, weights(b, "w", codes((4, 4, 3, 3)), w)]
    if bias is not None and bias_params is not None:
        operands.append(weights(b, "b", bias, bias_params))
    model = finish(b, b.node("Conv", operands, pads=[1, 1, 1, 1]), u8(0.9, 100))
    return Trap(model, {"x": reals(2, 4, 6, 6)}, 0.9, "Conv")


def gemm_bias_of_three_times_the_scale() -> Trap:
    return gemm(RNG.integers(-900, 900, 8).astype(np.int32), s32(np.float32(0.003)))


def conv_bias_half_a_percent_off() -> Trap:
    scale = np.float32(0.05) * np.float32(0.02) * np.float32(1.005)
    return conv(s8(0.02), RNG.integers(-90000, 90000, 4).astype(np.int32), s32(scale))


def conv_bias_with_a_zero_point() -> Trap:
    scale = np.float32(0.05) * np.float32(0.02)
    return conv(s8(0.02), RNG.integers(-5000, 9000, 4).astype(np.int32), s32(scale, 4000))


def gemm_bias_of_one_element() -> Trap:
    return gemm(np.asarray([1.25], np.float32), None)


def matmul(a: Params, w: Params) -> Trap:
    b = Builder(opset=21)
    x = activation(b, (4, 8), a)
    model = finish(b, b.node("MatMul", [x, weights(b, "w", codes((8, 5)), w)]), u8(0.4, 100))
    return Trap(model, {"x": reals(4, 8)}, 0.4, "MatMul", "per-axis-input")


def matmul_with_a_quantized_per_row() -> Trap:
    return matmul(u8([0.05, 0.03, 0.02, 0.07], [128, 3, 255, 0], axis=0), s8(0.02))


def matmul_with_scales_along_the_contraction() -> Trap:
    return matmul(X, s8(np.linspace(0.01, 0.03, 8), 0, axis=0))


def conv_weights_per_input_channel() -> Trap:
    scales = np.asarray([0.004, 0.01, 0.02, 0.04], np.float32)
    return conv(s8(scales, 0, axis=1))._replace(code="per-axis-input")


def conv_weights_per_output_channel() -> Trap:
    return conv(s8(np.asarray([0.004, 0.01, 0.02, 0.04], np.float32), [0, 1, -2, 3], axis=0))


def add_of_a_per_axis_constant() -> Trap:
    b = Builder(opset=21)
    x = activation(b, (2, 4, 3, 3))
    c = weights(b, "c", codes((1, 4, 1, 1)), s8([0.01, 0.02, 0.03, 0.05], 0, axis=1))
    model = finish(b, b.node("Add", [x, c]), u8(0.07, 120))
    return Trap(model, {"x": reals(2, 4, 3, 3)}, 0.07, "Add", "any")


def unary_of_a_per_axis_activation(op: str, **attributes: Any) -> Trap:
    b = Builder(opset=21)
    x = activation(b, (2, 4, 3), u8([0.05, 0.03, 0.02, 0.07], [128, 3, 255, 0], axis=1))
    operands = [x, b.constant("shape", np.asarray([2, 12]))] if op == "Reshape" else [x]
    model = finish(b, b.node(op, operands, **attributes), u8(0.04, 77))
    return Trap(model, {"x": reals(2, 4, 3)}, 0.04, op, "any")


def weights_through_a_transpose() -> Trap:
    b = Builder(opset=21)
    x = activation(b, (4, 8))
    w = weights(b, "w", codes((5, 8)), s8(np.linspace(0.01, 0.03, 5), 0, axis=0))
    turned = b.node("Transpose", [w], perm=[1, 0])
    model = finish(b, b.node("MatMul", [x, turned]), u8(0.4, 100))
    return Trap(model, {"x": reals(4, 8)}, 0.4, "MatMul")


def bias_of_a_transposed_convolution() -> Trap:
    b = Builder(opset=21)
    x = activation(b, (1, 4, 4, 4))
    w = weights(b, "w", codes((4, 3, 3, 3)), s8(0.02))
    bias = weights(b, "b", codes((3,), np.int8), s8(0.125, 4))
    model = finish(b, b.node("ConvTranspose", [x, w, bias], strides=[2, 2]), u8(0.5, 128))
    return Trap(model, {"x": reals(1, 4, 4, 4)}, 0.5, "ConvTranspose")


def blocked_convolution_weights() -> Trap:
    scales = RNG.uniform(0.01, 0.03, (4, 2, 3, 3)).astype(np.float32)
    return blocked_convolution(scales, 1)._replace(code="blocked-input")


def blocks_that_are_channels() -> Trap:
    scales = RNG.uniform(0.01, 0.03, (4, 1, 1, 1)).astype(np.float32)
    return blocked_convolution(np.broadcast_to(scales, (4, 2, 3, 3)), 1)


def blocks_of_channels() -> Trap:
    return blocked_convolution(np.repeat([0.01, 0.03], 36).reshape(2, 4, 3, 3), 0)


def blocked_convolution(scales: Array, axis: int) -> Trap:
    b = Builder(opset=21)
    x = activation(b, (2, 4, 6, 6))
    b.constant("w", codes((4, 4, 3, 3)))
    b.constant("w_scale", scales.astype(np.float32))
    w = b.node("DequantizeLinear", ["w", "w_scale"], axis=axis, block_size=2)
    model = finish(b, b.node("Conv", [x, w]), u8(0.9, 100))
    return Trap(model, {"x": reals(2, 4, 6, 6)}, 0.9, "Conv")


def scale_that_a_caller_may_override() -> Trap:
    b = Builder(opset=21)
    b.feed("x", (2, 4, 6, 6), np.float32)
    b.feed("s", (), np.float32)
    b.constant("s", np.asarray(0.05, np.float32))
    b.constant("z", np.asarray(128, np.uint8))
    q = b.node("QuantizeLinear", ["x", "s", "z"])
    x = b.node("DequantizeLinear", [q, "s", "z"])
    w = weights(b, "w", codes((4, 4, 3, 3)), s8(0.02))
    model = finish(b, b.node("Conv", [x, w]), u8(0.9, 100))
    inputs = {"x": reals(2, 4, 6, 6), "s": np.asarray(0.11, np.float32)}
    return Trap(model, inputs, 0.9, "Conv", "input-not-quantized")


def dequantized_value_that_is_an_output() -> Trap:
    b = Builder(opset=21)
    x = activation(b, (2, 4, 6, 6))
    b.output(x, np.float32)
    w = weights(b, "w", codes((4, 4, 3, 3)), s8(0.02))
    model = finish(b, b.node("Conv", [x, w]), u8(0.9, 100))
    return Trap(model, {"x": reals(2, 4, 6, 6)}, 0.9, "Conv")


def float_result_read_by_a_float_operator_too() -> Trap:
    b = Builder(opset=21)
    x = activation(b, (2, 4, 6, 6))
    result = b.node("Conv", [x, weights(b, "w", codes((4, 4, 3, 3)), s8(0.02))])
    b.output(b.node("Softsign", [result], name="f"), np.float32)
    return Trap(finish(b, result, u8(0.9, 100)), {"x": reals(2, 4, 6, 6)}, 0.9, "Conv")


def float_result_quantized_twice(op: str) -> Trap:
    b = Builder(opset=21)
    x = activation(b, (2, 4, 6, 6))
    second = weights(b, "w", codes((4, 4, 3, 3)), s8(0.02))
    result = b.node(op, [x, second] if op == "Conv" else [x, x])
    coarse = u8(0.7, 3)
    b.output(b.dequantize(b.quantize(result, coarse, "coarse_q"), coarse, "coarse"), np.float32)
    return Trap(finish(b, result, u8(0.9, 100)), {"x": reals(2, 4, 6, 6)}, 0.9, op)


def movers_in_a_row() -> Trap:
    b = Builder(opset=21)
    x = activation(b, (2, 3, 4))
    flat = b.node("Reshape", [x, b.constant("shape", np.asarray([6, 4]))])
    model = finish(b, b.node("Transpose", [flat], perm=[1, 0]), u8(0.05, 128))
    return Trap(model, {"x": reals(2, 3, 4)}, 0.0, "Transpose")


def signed_codes_without_a_zero_point() -> Trap:
    b = Builder(opset=21)
    b.feed("x", (2, 6), np.int8)
    x = b.dequantize("x", s8(0.05, None))
    shape = b.constant("shape", np.asarray([3, 4]))
    model = finish(b, b.node("Reshape", [x, shape]), s8(0.05, None))
    return Trap(model, {"x": codes((2, 6))}, 0.0, "Reshape")


def global_pool_with_an_extreme_ratio() -> Trap:
    b = Builder(opset=21)
    x = activation(b, (2, 4, 6, 6), u8(5.0, 128))
    model = finish(b, b.node("GlobalAveragePool", [x]), u8(0.005, 128))
    return Trap(model, {"x": reals(2, 4, 6, 6)}, 0.005, "GlobalAveragePool")


def average_pool_over_same_padding() -> Trap:
    b = Builder(opset=21)
    x = activation(b, (2, 4, 5, 5))
    pool = b.node("AveragePool", [x], kernel_shape=[3, 3], strides=[2, 2], auto_pad="SAME_UPPER")
    return Trap(finish(b, pool, u8(0.05, 128)), {"x": reals(2, 4, 5, 5)}, 0.05, "AveragePool")


def where_with_a_broadcast_condition() -> Trap:
    b = Builder(opset=21)
    x = activation(b, (2, 4, 5))
    c = weights(b, "c", codes((4, 1), np.uint8), u8(0.05, 128))
    mask = b.constant("mask", np.asarray([[True], [False], [True], [False]]))
    model = finish(b, b.node("Where", [mask, x, c]), u8(0.05, 128))
    return Trap(model, {"x": reals(2, 4, 5)}, 0.0, "Where")


def one_initializer_with_two_roles() -> Trap:
    """The same int8 array is a weight with scales per row and a bias of another scale."""
    b = Builder(opset=21)
    x = activation(b, (4, 4))
    w = codes((4, 4))
    b.constant("shared", w)
    matrix = b.dequantize("shared", s8([0.02, 0.03, 0.01, 0.04], 0, axis=1), "as_weight")
    addend = b.dequantize("shared", s8(0.3, 5), "as_addend")
    product = b.node("MatMul", [x, matrix])
    model = finish(b, b.node("Add", [product, addend]), u8(0.6, 128))
    return Trap(model, {"x": reals(4, 4)}, 0.6, "MatMul")


def branch_that_captures_a_quantized_value() -> Trap:
    b = Builder(opset=21)
    x = activation(b, (2, 3))
    cond = b.constant("cond", np.asarray(True))
    other = b.constant("other", np.asarray(2.0, np.float32))

    def branch(op: str) -> onnx.GraphProto:
        return onnx.helper.make_graph(
            [onnx.helper.make_node(op, [x, other], [f"{op}_out"])],
            op,
            [],
            [onnx.helper.make_tensor_value_info(f"{op}_out", 1, [2, 3])],
        )

    result = b.node("If", [cond], then_branch=branch("Mul"), else_branch=branch("Add"))
    return Trap(finish(b, result, u8(0.1, 128)), {"x": reals(2, 3)}, 0.0, "If", "any")


TRAPS: list[Callable[[], Trap]] = [
    gemm_bias_of_three_times_the_scale,
    conv_bias_half_a_percent_off,
    conv_bias_with_a_zero_point,
    gemm_bias_of_one_element,
    matmul_with_a_quantized_per_row,
    matmul_with_scales_along_the_contraction,
    conv_weights_per_input_channel,
    conv_weights_per_output_channel,
    add_of_a_per_axis_constant,
    *(partial(unary_of_a_per_axis_activation, op) for op in ("Sigmoid", "Relu", "Reshape")),
    weights_through_a_transpose,
    bias_of_a_transposed_convolution,
    blocked_convolution_weights,
    blocks_that_are_channels,
    blocks_of_channels,
    scale_that_a_caller_may_override,
    dequantized_value_that_is_an_output,
    float_result_read_by_a_float_operator_too,
    *(partial(float_result_quantized_twice, op) for op in ("Conv", "Add", "Mul")),
    movers_in_a_row,
    signed_codes_without_a_zero_point,
    global_pool_with_an_extreme_ratio,
    average_pool_over_same_padding,
    where_with_a_broadcast_condition,
    one_initializer_with_two_roles,
    branch_that_captures_a_quantized_value,
]


@pytest.mark.parametrize("make", TRAPS, ids=title)
def test_the_result_is_the_literal_one(make: Callable[[], Trap]) -> None:
    check(make())


def check(trap: Trap) -> None:
    """Our integers and those of the export against the literal model; the state of the operator."""
    graph = intonnx.import_model(trap.model)
    literal = run_onnxruntime(trap.model, trap.inputs, optimized=False)
    ours = intonnx.compile(graph).run(trap.inputs)
    exported = run_onnxruntime(intonnx.to_onnx(graph), trap.inputs, optimized=False)
    for name, expected in literal.items():
        # One quantum, and the rounding of the codes' real values in float32.
        allowed = trap.scale * 1.0001 if name == "y" else trap.scale + 1e-5
        for result in (ours[name], exported[name]):
            assert np.abs(result.astype(np.float64) - expected).max() <= allowed, name
    states = {n.op: (n.state, n.code) for n in intonnx.coverage(graph).nodes}
    state, code = states[trap.op]
    if not trap.code:
        assert state == "integer"
    elif trap.code != "any":
        assert (state, code) == ("float", trap.code)
