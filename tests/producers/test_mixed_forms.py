"""Float operators between QLinear ones: QLinearConv, DequantizeLinear, float, QuantizeLinear.

So onnxruntime's QOperator format writes every operator that has no QLinear kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest

import intonnx
from support.models import Builder, Fed, Held, run_inputs, u8
from support.runtime import run_onnxruntime
from support.wings import apart

F32 = np.float32
IN, MIDDLE, OUT = (0.02, 110), (0.05, 120), (0.04, 90)

Middle = Callable[[Builder, str], str]


def one(op: str, *constants: Any, **attributes: Any) -> Middle:
    """One float operator with constants as its further inputs."""

    def middle(build: Builder, x: str) -> str:
        held = [build.constant(f"k{i}", np.asarray(value)) for i, value in enumerate(constants)]
        return build.node(op, [x, *held], **attributes)

    return middle


def silu(build: Builder, x: str) -> str:
    return build.node("Mul", [x, build.node("Sigmoid", [x])])


def conv_relu(build: Builder, x: str) -> str:
    codes = np.random.default_rng(2).integers(0, 256, (4, 4, 3, 3))
    w = build.operand(Held(codes, u8(0.002, 120)), 1)
    return build.node("Relu", [build.node("Conv", [x, w])])


def twice(build: Builder, x: str) -> str:
    return build.node("Concat", [x, x], axis=2)


MIDDLES: dict[str, tuple[Middle, int]] = {
    "relu": (one("Relu"), 0),
    "tanh": (one("Tanh"), 0),
    "clip": (one("Clip", F32(0), F32(6)), 0),
    "silu": (silu, 0),
    "add": (one("Add", np.linspace(-1, 1, 4, dtype=F32).reshape(4, 1, 1)), 1),
    "pow": (one("Pow", F32(2)), 0),
    "max pool": (one("MaxPool", kernel_shape=[2, 2]), 0),
    "average pool": (one("AveragePool", kernel_shape=[2, 2]), 1),
    "mean": (one("ReduceMean", axes=[2, 3]), 1),
    "softmax": (one("Softmax", axis=1), 1),
    "layer norm": (one("LayerNormalization", np.ones(6, F32), np.zeros(6, F32)), 1),
    "transpose": (one("Transpose", perm=[0, 1, 3, 2]), 0),
    "pad": (one("Pad", np.asarray([0, 0, 1, 1, 0, 0, 1, 1]), F32(0.5)), 0),
    "concat": (twice, 0),
    "conv": (conv_relu, 1),
}


def mixed_model(middle: Middle) -> onnx.ModelProto:
    """The model; its outputs are the codes behind the middle and those of the last operator."""
    build = Builder(17)

    def parameters(name: str, scale: float, zero: int) -> list[str]:
        return [build.constant(f"{name}_scale", F32(scale)),
                build.constant(f"{name}_zero", np.uint8(zero))]  # fmt: skip

    x, y, z, w = (
        parameters(name, *params)
        for name, params in (("x", IN), ("y", MIDDLE), ("z", OUT), ("w", (0.005, 120)))
    )
    codes = np.random.default_rng(1).integers(0, 256, (4, 4, 1, 1)).astype(np.uint8)
    weights = build.constant("weights", codes)
    fed = build.operand(Fed("x", (1, 4, 6, 6)), 0)
    quantized = build.node("QuantizeLinear", [fed, *x])
    first = build.node("QLinearConv", [quantized, *x, weights, *w, *y])
    result = middle(build, build.node("DequantizeLinear", [first, *y]))
    again = build.node("QuantizeLinear", [result, *z])
    last = build.node("QLinearConv", [again, *z, weights, *w, *y])
    build.output(build.node("Identity", [again]), np.uint8)
    build.output(last, np.uint8)
    return build.model()


@pytest.mark.parametrize("name", MIDDLES)
def test_float_operators_between_qlinear_ones_become_integer(name: str) -> None:
    middle, quanta = MIDDLES[name]
    model = mixed_model(middle)
    graph = intonnx.import_model(model)
    assert intonnx.coverage(graph).float == 0, intonnx.coverage(graph).nodes
    inputs = run_inputs(model)
    wanted = run_onnxruntime(model, inputs, optimized=False)
    found = intonnx.compile(graph).run(inputs)
    # A quantum of the middle is at most a few of the last operator: only the first is limited.
    middle_name, last_name = graph.outputs
    apart({middle_name: found[middle_name]}, {middle_name: wanted[middle_name]}, quanta)
    assert found[last_name].shape == wanted[last_name].shape
    exported = run_onnxruntime(intonnx.to_onnx(graph), inputs, optimized=False)
    apart(exported, found, 0)
