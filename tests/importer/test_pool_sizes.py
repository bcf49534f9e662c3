"""Sizes that the onnx package infers and no runtime makes; names that stay on symbolic axes."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import intonnx
from support.models import Builder, Fed, s8, u8
from support.runtime import run_onnxruntime

CEIL: dict[str, Any] = {"kernel_shape": [1, 1], "strides": [3, 3], "ceil_mode": 1}
"""On [3, 3] a second window would start beyond the data: onnxruntime makes one, onnx infers two."""
SAME: dict[str, Any] = {**CEIL, "auto_pad": "SAME_UPPER"}
LARGE: dict[str, Any] = {"kernel_shape": [4, 4], "strides": [2, 2]}


def pooled(
    op_type: str, attrs: dict[str, Any], *, quantized: bool, opset: int, size: int = 3
) -> onnx.ModelProto:
    """DQ -> pool (-> Q -> DQ) -> Relu -> Q -> DQ."""
    build = Builder(opset)
    value = build.operand(Fed("x", ("N", 2, size, size), u8(0.05, 100)), 0)
    value = build.node(op_type, [value], **attrs)
    if quantized:
        value = build.dequantize(build.quantize(value, u8(0.04, 90)), u8(0.04, 90))
    value = build.node("Relu", [value])
    build.output(build.dequantize(build.quantize(value, u8(0.03)), u8(0.03), "y"), np.float32)
    return build.model(infer=False)


@pytest.mark.parametrize("opset", [13, 19, 22])
@pytest.mark.parametrize("quantized", [True, False])
@pytest.mark.parametrize("attrs", [CEIL, SAME, LARGE], ids=["ceil", "same", "large"])
@pytest.mark.parametrize("op_type", ["MaxPool", "AveragePool"])
def test_a_window_beyond_the_data_is_none(
    op_type: str, attrs: dict[str, Any], quantized: bool, opset: int
) -> None:
    if attrs is SAME and (op_type == "MaxPool" or opset < 19):
        pytest.skip("onnxruntime 1.32 refuses the negative padding")
    size, count = (5, 2) if attrs is SAME else (3, 1)
    model = pooled(op_type, attrs, quantized=quantized, opset=opset, size=size)
    x = {"x": np.random.default_rng(0).standard_normal((2, 2, size, size)).astype(np.float32)}
    wanted = run_onnxruntime(model, x, optimized=False)["y"]
    assert wanted.shape == (2, 2, count, count)
    graph = intonnx.import_model(model)
    assert graph.types["y"].shape == ("N", 2, count, count)
    ours = intonnx.compile(graph).run(x)["y"]
    np.testing.assert_allclose(ours, wanted, atol=0.0301)
    for form in ("qlinear", "qdq"):
        exported = intonnx.to_onnx(graph, form=form)  # type: ignore[arg-type]
        for optimized in (False, True):
            found = run_onnxruntime(exported, x, optimized=optimized)["y"]
            assert found.shape == wanted.shape
            np.testing.assert_allclose(found, wanted, atol=0.0301)
        again = intonnx.compile(intonnx.import_model(exported)).run(x)["y"]
        np.testing.assert_allclose(again, wanted, atol=0.0301)


def test_wrong_sizes_that_a_tool_wrote_are_not_believed() -> None:
    model = onnx.shape_inference.infer_shapes(pooled("MaxPool", CEIL, quantized=True, opset=13))
    graph = intonnx.import_model(model)
    assert graph.types["y"].shape == ("N", 2, 1, 1)


def test_a_dynamic_axis_of_an_output_keeps_its_name() -> None:
    build = Builder(21)
    value = build.operand(Fed("x", ("N", 2, 3), s8(0.05)), 0)
    sizes = build.constant("sizes", np.asarray([-1, 3, 2], np.int64))
    build.node("Reshape", [value, sizes], name="y")
    build.outputs.append(helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 3, 2]))
    exported = intonnx.to_onnx(intonnx.import_model(build.model(infer=False)))
    (output,) = exported.graph.output
    dims = output.type.tensor_type.shape.dim
    assert [dim.dim_param or dim.dim_value for dim in dims] == ["N", 3, 2]
