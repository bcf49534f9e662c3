"""Sums with the accumulator of a convolution that has no quantizer of its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

import intonnx
from intonnx.ir.ops.conv import Conv2d
from intonnx.ir.ops.quantize import Requantize
from support.models import Builder, Fed, Held, s8, u8
from support.wings import check_model

RNG = np.random.default_rng(0)


def residual(per_channel: bool, relu: bool = False, storage: Any = u8) -> onnx.ModelProto:
    """conv(x) without a quantizer of its own + x, Relu, Q."""
    build = Builder()
    x = build.operand(Fed("x", (1, 4, 6, 6), storage(0.02, 9), quantized=True), 0)
    scales = [0.01, 0.02, 0.005, 0.03] if per_channel else 0.01
    zeros = [0] * 4 if per_channel else 0
    weights = RNG.integers(-127, 128, (4, 4, 3, 3))
    w = build.operand(Held(weights, s8(scales, zeros, 0 if per_channel else None)), 1)
    real = build.node("Add", [build.node("Conv", [x, w], pads=[1, 1, 1, 1]), x])
    real = build.node("Relu", [real]) if relu else real
    build.output(build.quantize(real, storage(0.05, 0), "y"), storage(1).dtype)
    return build.model()


@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("storage", [u8, s8])
def test_a_residual_sum_with_an_accumulator(per_channel: bool, relu: bool, storage: Any) -> None:
    x = RNG.integers(-20, 100, (1, 4, 6, 6)).astype(storage(1).dtype)
    model = residual(per_channel, relu, storage)
    check_model(model, {"x": x}, literal_quanta=1, kernel=False)


def test_a_constant_added_to_an_accumulator_is_its_bias() -> None:
    build = Builder()
    x = build.operand(Fed("x", (1, 2, 5, 5), u8(0.02, 9), quantized=True), 0)
    w = build.operand(Held(RNG.integers(-127, 128, (3, 2, 1, 1)), s8(0.01)), 1)
    bias = build.operand(Held(np.array([[[0.3]], [[-2.0]], [[1.7]]], np.float32)), 2)
    real = build.node("Add", [bias, build.node("Conv", [x, w])])
    build.output(build.quantize(real, u8(0.05, 100), "y"), np.uint8)
    graph = intonnx.import_model(build.model())
    assert [type(node.op) for node in graph.nodes][-2:] == [Conv2d, Requantize]
