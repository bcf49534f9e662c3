"""Operators that stayed ONNX where the onnx package's own reference fails."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import intonnx
from support.models import Array, Builder
from support.runtime import run_onnxruntime

IMAGE = (2, 3, 5, 4)


@pytest.mark.parametrize("opset", [11, 13, 18, 21])
@pytest.mark.parametrize(
    ("op_type", "attrs", "shape"),
    [
        ("AveragePool", {"kernel_shape": [2, 3], "auto_pad": "SAME_UPPER", "ceil_mode": 1}, IMAGE),
        ("AveragePool", {"kernel_shape": [6, 2], "strides": [3, 1]}, IMAGE),
        ("AveragePool", {"kernel_shape": [2, 2], "pads": [1, 0, 1, 1], "strides": [2, 2],
                         "count_include_pad": 1}, IMAGE),
        ("MaxPool", {"kernel_shape": [6, 2], "strides": [3, 1]}, IMAGE),
        ("MaxPool", {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "dilations": [2, 1]}, IMAGE),
        ("GlobalAveragePool", {}, IMAGE),
        ("GlobalAveragePool", {}, (0, 3, 5, 4)),
        ("Flatten", {}, (0, 3, 5, 4)),
        ("Flatten", {"axis": -2}, IMAGE),
    ],
)  # fmt: skip
def test_a_float_operator(
    op_type: str, attrs: dict[str, Any], shape: tuple[int, ...], opset: int
) -> None:
    build = Builder(opset)
    build.output(build.node(op_type, [build.feed("x", ("N", *shape[1:]), np.float32)], **attrs))
    same(build, shape)


@pytest.mark.parametrize("opset", [11, 18])
@pytest.mark.parametrize(
    ("pads", "attrs"),
    [
        ([0, -1, 2, 0, 0, -1, -3, 1], {}),
        ([0, 0, -2, 1, 0, 0, -1, 2], {"mode": "edge"}),
        ([0, 0, 2, 1, 0, 0, 1, 2], {"mode": "reflect"}),
    ],
)
def test_a_float_pad(pads: list[int], attrs: dict[str, Any], opset: int) -> None:
    build = Builder(opset)
    x, cells = build.feed("x", IMAGE, np.float32), build.constant("p", np.asarray(pads))
    value = [build.constant("v", np.float32(7))] if not attrs else []
    build.output(build.node("Pad", [x, cells, *value], **attrs))
    same(build, IMAGE)


@pytest.mark.parametrize("opset", [11, 13, 14, 15, 21])
@pytest.mark.parametrize("folded", [False, True])
def test_a_float_batch_normalization_does_not_train(opset: int, folded: bool) -> None:
    """The reference takes the momentum that opsets before 14 had for a sign of training."""
    build = Builder(opset)
    rng = np.random.default_rng(1)
    names = [build.constant(name, rng.uniform(0.5, 2, 3).astype(np.float32)) for name in "sbmv"]
    x = build.feed("x", IMAGE, np.float32)
    data = x
    if folded:
        data = build.constant("c", rng.normal(size=IMAGE).astype(np.float32))
    value = build.node("BatchNormalization", [data, *names])
    build.output(build.node("Add", [value, x]) if folded else value)
    same(build, IMAGE)


def same(build: Builder, shape: tuple[int, ...]) -> None:
    model = build.model()
    x: Array = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    (wanted,) = run_onnxruntime(model, {"x": x}, optimized=False).values()
    (found,) = intonnx.compile(intonnx.import_model(model)).run({"x": x}).values()
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
