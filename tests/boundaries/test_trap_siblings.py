"""Siblings of the traps: the same mistakes in other places.

Each gives the literal result within one quantum, and the operator named is integer, or float for
the reason named.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import onnx
import pytest

import intonnx
from support.models import Builder, Params, s8, s32, u8
from support.runtime import run_onnxruntime

from .test_traps import RNG, Array, Trap, activation, check, codes, finish, reals, title, weights

IMAGE = (2, 4, 6, 6)
CHANNELS = np.linspace(0.01, 0.03, 5)


def image_to(make: Callable[[Builder, str], str], op: str, scale: float = 0.9) -> Trap:
    """An operator on one quantized image, quantized."""
    b = Builder(opset=21)
    model = finish(b, make(b, activation(b, IMAGE)), u8(scale, 100))
    return Trap(model, {"x": reals(*IMAGE)}, scale, op)


def indices(b: Builder, *values: int) -> str:
    return b.constant(f"i{len(b.constants)}", np.asarray(values, np.int64))


# -- scales of weights on their way ---------------------------------------------------------------


def channel_weights_through(mover: str) -> Trap:
    """Scales along axis 0 of [5, 4], or axis 1 of [1, 5, 4], that end along axis 0 of a kernel."""

    def make(b: Builder, x: str) -> str:
        if mover == "Squeeze":
            w = weights(b, "w", codes((1, 5, 4, 1, 1)), s8(CHANNELS, 0, axis=1))
            return b.node("Conv", [x, b.node("Squeeze", [w, indices(b, 0)])])
        w = weights(b, "w", codes((5, 4)), s8(CHANNELS, 0, axis=0))
        shape = (5, 4, 1, 1) if mover == "Reshape" else (2, 3)
        return b.node("Conv", [x, b.node(mover, [w, indices(b, *shape)])])

    return image_to(make, "Conv")


def bias_through_a_reshape() -> Trap:
    def make(b: Builder, x: str) -> str:
        w = weights(b, "w", codes((5, 4, 1, 1)), s8(CHANNELS, 0, axis=0))
        bias = weights(b, "b", codes((1, 5)), s8(0.1, 3))
        return b.node("Conv", [x, w, b.node("Reshape", [bias, indices(b, 5)])])

    return image_to(make, "Conv")


def scales_that_a_reshape_mixes() -> Trap:
    """[4, 6] per column becomes [8, 3]: a column is no column any more."""
    b = Builder(opset=21)
    x = activation(b, (4, 8))
    w = weights(b, "w", codes((4, 6)), s8(np.linspace(0.01, 0.03, 6), 0, axis=1))
    product = b.node("MatMul", [x, b.node("Reshape", [w, indices(b, 8, 3)])])
    model = finish(b, product, u8(0.4, 100))
    return Trap(model, {"x": reals(4, 8)}, 0.4, "MatMul", "any")


# -- one thing, several readers -------------------------------------------------------------------


def one_bias_for_two_scales() -> Trap:
    """One initializer is the int32 bias of two convolutions whose accumulators differ."""

    def make(b: Builder, x: str) -> str:
        bias = b.constant("b", RNG.integers(-9000, 9000, 4).astype(np.int32))
        total = []
        for index, scale in enumerate((0.02, 0.007)):
            w = weights(b, f"w{index}", codes((4, 4, 1, 1)), s8(scale))
            step = np.float32(0.05) * np.float32(scale)
            real = b.dequantize(bias, s32(step), f"bias{index}")
            out = u8(0.9, 100)
            total.append(b.dequantize(b.quantize(b.node("Conv", [x, w, real]), out), out))
        return b.node("Add", total)

    return image_to(make, "Conv")


def one_weight_for_a_convolution_and_a_float_operator() -> Trap:
    def make(b: Builder, x: str) -> str:
        w = weights(b, "w", codes((4, 4, 1, 1)), s8(0.02))
        b.output(b.node("Hardmax", [w], name="h"), np.float32)
        return b.node("Conv", [x, w])

    return image_to(make, "Conv")


def one_input_quantized_in_two_ways(op: str) -> Trap:
    """Both quantizers read the float graph input; the operator reads both."""
    b = Builder(opset=21)
    b.feed("x", (2, 4, 6), np.float32)
    sides = []
    for index, params in enumerate((u8(0.05, 128), u8(0.03, 3))):
        sides.append(b.dequantize(b.quantize("x", params, f"q{index}"), params))
    model = finish(b, b.node(op, sides), u8(0.1, 100))
    return Trap(model, {"x": reals(2, 4, 6)}, 0.1, op)


def moved_value_quantized_twice(op: str, **attributes: Any) -> Trap:
    def make(b: Builder, x: str) -> str:
        moved = b.node(op, [x], **attributes)
        coarse = u8(0.3, 3)
        b.output(b.dequantize(b.quantize(moved, coarse, "c_q"), coarse, "c"), np.float32)
        return moved

    return image_to(make, op, 0.05)._replace(scale=0.3)


def codes_that_are_an_output_too() -> Trap:
    def make(b: Builder, x: str) -> str:
        b.output("x_q", np.uint8)
        w = weights(b, "w", codes((4, 4, 1, 1)), s8(0.02))
        return b.node("Conv", [x, w])

    return image_to(make, "Conv")


def relu_beside_a_quantizer() -> Trap:
    """The result of a convolution is quantized as it is, and after a Relu."""

    def make(b: Builder, x: str) -> str:
        conv = b.node("Conv", [x, weights(b, "w", codes((4, 4, 1, 1)), s8(0.02))])
        direct = s8(0.4, 5)
        b.output(b.dequantize(b.quantize(conv, direct, "d_q"), direct, "d"), np.float32)
        return b.node("Relu", [conv])

    return image_to(make, "Conv")


def dead_reader_of_a_float_result() -> Trap:
    """A float operator that no output needs is no reader, so the softmax can be integer."""

    def make(b: Builder, x: str) -> str:
        soft = b.node("Softmax", [x], axis=-1)
        b.node("Hardmax", [soft])
        return soft

    return image_to(make, "Softmax", 0.01)


# -- parameters ------------------------------------------------------------------------------------


def parameter_that_a_caller_gives(which: str) -> Trap:
    """The scale or the zero point of the activation is a graph input without a default."""
    b = Builder(opset=21)
    b.feed("x", IMAGE, np.float32)
    given: dict[str, Array] = {"s": np.asarray(0.05, np.float32), "z": np.asarray(117, np.uint8)}
    for name, value in given.items():
        if name == which:
            b.feed(name, (), value.dtype)
        else:
            b.constant(name, value)
    q = b.node("QuantizeLinear", ["x", "s", "z"])
    x = b.node("DequantizeLinear", [q, "s", "z"])
    model = finish(b, b.node("Conv", [x, weights(b, "w", codes((4, 4, 3, 3)), s8(0.02))]), u8(0.9))
    inputs = {"x": reals(*IMAGE), which: given[which]}
    return Trap(model, inputs, 0.9, "Conv", "input-not-quantized")


def quantizer_per_channel_after(op: str) -> Trap:
    b = Builder(opset=21)
    x = activation(b, IMAGE)
    operands = [x, weights(b, "w", codes((4, 4, 1, 1)), s8(0.02))] if op == "Conv" else [x]
    out = u8([0.9, 0.5, 0.3, 0.7], [0, 128, 255, 7], axis=1)
    model = finish(b, b.node(op, operands), out)
    return Trap(model, {"x": reals(*IMAGE)}, 0.9, op, "" if op == "Conv" else "any")


def activation_per_channel_into(op: str) -> Trap:
    b = Builder(opset=21)
    x = activation(b, IMAGE, u8([0.05, 0.03, 0.02, 0.07], [128, 3, 255, 0], axis=1))
    attributes: dict[str, Any] = {"kernel_shape": [2, 2]} if op.endswith("Pool") else {}
    operands = [x]
    if op == "Conv":
        operands.append(weights(b, "w", codes((4, 4, 1, 1)), s8(0.02)))
    if op == "Concat":
        operands, attributes = [x, x], {"axis": 1}
    model = finish(b, b.node(op, operands, **attributes), u8(0.9, 100))
    return Trap(model, {"x": reals(*IMAGE)}, 0.9, op, "any")


def scales_beyond_the_range_of_their_product() -> Trap:
    """sx * sw underflows float32: the literal result is a plain zero."""
    b = Builder(opset=21)
    x = activation(b, (3, 16), u8(1e-30, 128))
    w = weights(b, "w", codes((16, 8)), s8(1e-20))
    model = finish(b, b.node("MatMul", [x, w]), u8(0.4, 100))
    return Trap(model, {"x": reals(3, 16) * np.float32(1e-30)}, 0.4, "MatMul", "any")


# -- subgraphs -------------------------------------------------------------------------------------


def quantizers_in_a_branch() -> Trap:
    """Q and DQ inside the branches of an If, on a value from outside."""
    b = Builder(opset=21)
    x = activation(b, (2, 3))
    cond = b.constant("cond", np.asarray(True))
    b.constant("bs", np.asarray(0.11, np.float32))
    b.constant("bz", np.asarray(3, np.uint8))

    def branch(name: str) -> onnx.GraphProto:
        return onnx.helper.make_graph(
            [
                onnx.helper.make_node("QuantizeLinear", [x, "bs", "bz"], [f"{name}_q"]),
                onnx.helper.make_node("DequantizeLinear", [f"{name}_q", "bs", "bz"], [f"{name}_o"]),
            ],
            name,
            [],
            [onnx.helper.make_tensor_value_info(f"{name}_o", 1, [2, 3])],
        )

    result = b.node("If", [cond], then_branch=branch("a"), else_branch=branch("b"))
    return Trap(finish(b, result, u8(0.1, 128)), {"x": reals(2, 3)}, 0.0, "If", "any")


def codes_that_a_branch_captures() -> Trap:
    """The codes themselves are read in a branch, so they must keep their name and meaning."""
    b = Builder(opset=21)
    x = activation(b, (2, 3))
    cond = b.constant("cond", np.asarray(False))

    def branch(op: str) -> onnx.GraphProto:
        made = onnx.helper.make_node(op, ["x_q"], [f"{op}_o"])
        value = onnx.helper.make_tensor_value_info(f"{op}_o", onnx.TensorProto.UINT8, [2, 3])
        return onnx.helper.make_graph([made], op, [], [value])

    picked = b.node("If", [cond], then_branch=branch("BitwiseNot"), else_branch=branch("Identity"))
    both = b.node("Add", [x, b.dequantize(picked, u8(0.05, 128))])
    return Trap(finish(b, both, u8(0.1, 128)), {"x": reals(2, 3)}, 0.1, "Add")


SIBLINGS: list[Callable[[], Trap]] = [
    *(partial(channel_weights_through, mover) for mover in ("Reshape", "Unsqueeze", "Squeeze")),
    bias_through_a_reshape,
    scales_that_a_reshape_mixes,
    one_bias_for_two_scales,
    one_weight_for_a_convolution_and_a_float_operator,
    *(partial(one_input_quantized_in_two_ways, op) for op in ("Add", "Mul", "Max")),
    partial(moved_value_quantized_twice, "Transpose", perm=[0, 2, 3, 1]),
    partial(moved_value_quantized_twice, "MaxPool", kernel_shape=[2, 2]),
    partial(moved_value_quantized_twice, "Relu"),
    partial(moved_value_quantized_twice, "Sigmoid"),
    codes_that_are_an_output_too,
    relu_beside_a_quantizer,
    dead_reader_of_a_float_result,
    *(partial(parameter_that_a_caller_gives, which) for which in "sz"),
    *(partial(quantizer_per_channel_after, op) for op in ("Conv", "Relu", "Identity", "Tanh")),
    *(partial(activation_per_channel_into, op)
      for op in ("Conv", "MaxPool", "AveragePool", "Concat", "Softmax", "Abs")),
    scales_beyond_the_range_of_their_product,
    quantizers_in_a_branch,
    codes_that_a_branch_captures,
]  # fmt: skip


@pytest.mark.parametrize("make", SIBLINGS, ids=title)
def test_the_result_is_the_literal_one(make: Callable[[], Trap]) -> None:
    check(make())


@pytest.mark.parametrize("op", ["MaxPool", "Relu"])
def test_a_negative_scale_is_one_clear_error(op: str) -> None:
    """Legal in ONNX, but refused: no integer operator reads such codes in the right order."""
    b = Builder(opset=21)
    attributes = {"kernel_shape": [2, 2]} if op == "MaxPool" else {}
    x = activation(b, IMAGE, Params(np.uint8, -0.05, 128))
    model = finish(b, b.node(op, [x], **attributes), u8(0.05, 128))
    run_onnxruntime(model, {"x": reals(*IMAGE)}, optimized=False)
    with pytest.raises(intonnx.ImportFailure, match=r"QuantizeLinear.*the scale -0\.05 is not"):
        intonnx.import_model(model)
