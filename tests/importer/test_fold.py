"""Constants that are computed at import mean what the model's opset says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import intonnx
from support.models import Builder
from support.runtime import run_onnxruntime

X = np.arange(12, dtype=np.float32).reshape(2, 2, 3)


@pytest.mark.parametrize(
    ("op_type", "attrs", "opset"),
    [
        ("Softmax", {}, 11),
        ("LogSoftmax", {"axis": 1}, 12),
        ("Clip", {"min": 2.0, "max": 5.0}, 10),
        ("Squeeze", {}, 11),
        ("Unsqueeze", {"axes": [1]}, 12),
        ("ReduceSum", {"axes": [1], "keepdims": 0}, 11),
        ("ReduceMax", {"axes": [0]}, 13),
        ("Hardmax", {"axis": 1}, 11),
    ],
)
def test_a_computed_constant(op_type: str, attrs: dict[str, Any], opset: int) -> None:
    build = Builder(opset)
    constant = build.node(op_type, [build.constant("c", X)], **attrs)
    build.feed("x", (), np.float32)
    build.output(build.node("Mul", [constant, "x"], name="y"))
    model = build.model()
    x = {"x": np.asarray(1, np.float32)}
    wanted = run_onnxruntime(model, x, optimized=False)["y"]
    graph = intonnx.import_model(model)
    if op_type != "Hardmax":
        found = intonnx.compile(graph).run(x)["y"]
        np.testing.assert_allclose(found, wanted, rtol=1e-6)
    else:
        assert constant not in graph.constants
