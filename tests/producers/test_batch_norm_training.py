"""Conv -> Div -> BatchNormalization, as PyTorch's quantization-aware training exports it."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

import intonnx
from support.models import Builder, Params, s8, u8
from support.runtime import run_onnxruntime
from support.wings import check_model

F32 = np.float32
RNG = np.random.default_rng(8)
REAL = RNG.normal(0, 0.3, (4, 3, 3, 3)).astype(F32)
FACTOR = RNG.uniform(0.3, 3, 4).astype(F32)
SHAPE = (2, 3, 6, 6)


def fake(build: Builder, value: str, params: Params) -> str:
    return build.dequantize(build.quantize(value, params), params)


def conv_model(after: Any, *, out: Params | None = None) -> onnx.ModelProto:
    """Weights times the factor between Q and DQ, a convolution, and what is done to it."""
    build = Builder(17)
    x = fake(build, build.feed("x", SHAPE, F32), u8(0.02, 100))
    scaled = build.constant("w", REAL * FACTOR.reshape(4, 1, 1, 1))
    w = fake(build, scaled, s8(RNG.uniform(0.004, 0.01, 4), 0, axis=0))
    zeros = build.constant("zeros", np.zeros(4, F32))
    value = after(build, build.node("Conv", [x, w, zeros], pads=[1, 1, 1, 1]))
    if out is None:
        build.output(value, F32)
    else:
        build.output(build.dequantize(build.quantize(value, out), out, "y"), F32)
    return build.model()


def divided(build: Builder, value: str) -> str:
    return build.node("Div", [value, build.constant("f", FACTOR.reshape(1, 4, 1, 1))])


def normalized(build: Builder, value: str) -> str:
    statistics = [RNG.uniform(0.5, 2, 4), RNG.normal(0, 1, 4), RNG.normal(0, 1, 4),
                  RNG.uniform(0.2, 2, 4)]  # fmt: skip
    names = [build.constant(f"bn{i}", a.astype(F32)) for i, a in enumerate(statistics)]
    return build.node("Relu", [build.node("BatchNormalization", [divided(build, value), *names])])


def multiplied(build: Builder, value: str) -> str:
    return build.node("Mul", [build.constant("f", FACTOR.reshape(4, 1, 1)), value])


def scaled(build: Builder, value: str) -> str:
    return build.node("Mul", [value, build.constant("f", F32(-0.37))])


@pytest.mark.parametrize("after", [divided, normalized, multiplied, scaled])
def test_factors_of_channels_join_the_weights(after: Any) -> None:
    inputs = {"x": RNG.normal(0, 1, SHAPE).astype(F32)}
    out = u8(0.1, 60)
    model = conv_model(after, out=out)
    graph = intonnx.import_model(model)
    assert intonnx.coverage(graph).float == 0
    names = [node.op.name for node in graph.nodes]
    assert names[:3] == ["qnn.quantize", "qnn.conv2d", "qnn.requantize"]
    wanted = run_onnxruntime(model, inputs, optimized=False)["y"]
    for numerics in ("qlinear", "qdq"):
        found = intonnx.compile(graph, numerics=numerics).run(inputs)["y"]
        apart = np.abs(found - wanted) / F32(0.1)
        assert apart.max() < 1.001
        assert np.mean(apart > 0.5) < 0.01


def test_a_factor_of_every_element_stays() -> None:
    def after(build: Builder, value: str) -> str:
        return build.node(
            "Mul", [value, build.constant("f", RNG.uniform(1, 2, (4, 6, 6)).astype(F32))]
        )

    model = conv_model(after, out=u8(0.1, 60))
    inputs = {"x": RNG.normal(0, 1, SHAPE).astype(F32)}
    graph = check_model(model, inputs, quanta=0, literal_quanta=0, kernel=False)
    assert any(node.op.name == "qnn.multiply" for node in graph.nodes)
