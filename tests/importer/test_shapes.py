"""Sizes that are known at import although another axis is not."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import intonnx
from intonnx.ir.types import static_shape
from support.graphs import again
from support.models import Builder, s8, u8
from support.runtime import run_onnxruntime


def test_a_known_size_of_a_partly_unknown_shape_is_a_constant() -> None:
    """Shape -> Gather -> Div -> Slice, as PyTorch exports a split in half."""
    constants = {
        "one": np.asarray([1], np.int64),
        "two": np.asarray([2], np.int64),
        "zero": np.asarray([0], np.int64),
    }
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Gather", ["shape", "one"], ["width"]),
        helper.make_node("Div", ["width", "two"], ["half"]),
        helper.make_node("Slice", ["x", "zero", "half", "one"], ["part"]),
        helper.make_node("Gather", ["shape", "zero"], ["batch"]),
        helper.make_node("Concat", ["batch", "two", "two"], ["target"], axis=0),
        helper.make_node("Reshape", ["part", "target"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "halves",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 2, 2])],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    imported = intonnx.import_model(model)
    assert imported.constants["half"].tolist() == [4]
    assert "batch" not in imported.constants
    x = np.arange(24, dtype=np.float32).reshape(3, 8)
    ours = intonnx.compile(imported).run({"x": x})["y"]
    theirs = run_onnxruntime(model, {"x": x}, optimized=False)["y"]
    np.testing.assert_array_equal(ours, theirs)
    states = {node.op: node.state for node in intonnx.coverage(imported).nodes}
    assert states["Shape"] == "integer"


def test_the_shape_that_expand_asks_for_is_not_that_of_its_result() -> None:
    """Where onnx does not know the data's shape it takes the shape that is asked for."""
    build = Builder(13)
    x = build.dequantize(build.feed("x", (2, 2, 6, 6), np.uint8), u8(0.1))
    build.nodes.append(helper.make_node("Foo", [x], ["foo"], domain="custom"))
    wide = build.node("Expand", ["foo", build.constant("shape", np.asarray([2, 1, 1]))])
    build.output(build.quantize(wide, u8(0.2), "y"), np.uint8)
    model = build.model(infer=False)
    model.opset_import.append(helper.make_opsetid("custom", 1))
    model.graph.value_info.add(name="foo").type.tensor_type.elem_type = TensorProto.FLOAT
    graph = intonnx.import_model(model)
    assert static_shape(graph.types["y"].shape) is None


def test_types_of_the_whole_model_are_not_believed_once_they_were_wrong() -> None:
    build = Builder(21)
    x = build.dequantize(build.feed("x", (2, 72), np.uint8), u8(0.1))
    wide = build.node("Expand", [x, build.constant("shape", np.asarray([2, 1, 1]))])
    moved = build.node("Transpose", [wide], perm=[2, 0, 1])
    build.output(build.quantize(build.node("Hardmax", [moved]), u8(0.2), "y"), np.uint8)
    model = build.model()
    for name, shape in ((wide, [2, 1, 1]), (moved, [1, 2, 1])):
        model.graph.value_info.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
    graph = intonnx.import_model(model)
    assert graph.types["y"].shape == (72, 2, 2)


def test_quantizers_of_com_microsoft_keep_shapes() -> None:
    build = Builder(13, "com.microsoft")
    x = build.dequantize(build.quantize(build.feed("x", ("N", 2, 6), np.float32), u8(0.1)), u8(0.1))
    moved = build.node("Transpose", [x], perm=[2, 0, 1])
    build.output(build.node("Hardmax", [moved], name="y"), np.float32)
    assert intonnx.import_model(build.model(infer=False)).types["y"].shape == (6, "N", 2)


@pytest.mark.parametrize("op_type", ["TopK", "Slice", "Transpose", "Softmax", "Conv", "ReduceSum"])
def test_a_rank_that_is_not_known_is_no_error(op_type: str) -> None:
    build = Builder(13)
    x = build.dequantize(build.feed("x", (2, 3, 6, 6), np.uint8), u8(0.1))
    build.nodes.append(helper.make_node("Foo", [x], ["foo"], domain="custom"))
    data = build.dequantize(build.quantize("foo", u8(0.2)), u8(0.2))
    one = [build.constant(name, np.asarray([1])) for name in ("k", "end", "axis")]
    w = build.dequantize(build.constant("w", np.ones((1, 3, 1, 1), np.int8)), s8(1.0))
    operands = {"TopK": one[:1], "Slice": one, "ReduceSum": one[:1], "Conv": [w]}
    value = build.node(op_type, [data, *operands.get(op_type, [])], results=1 + (op_type == "TopK"))
    build.output(build.dequantize(build.quantize(value, u8(0.3)), u8(0.3), "y"), np.float32)
    model = build.model(infer=False)
    model.opset_import.append(helper.make_opsetid("custom", 1))
    model.graph.value_info.add(name="foo").type.tensor_type.elem_type = TensorProto.FLOAT
    again(intonnx.import_model(model))


@pytest.mark.parametrize("op_type", ["Shape", "Size"])
def test_sizes_are_read_from_codes(op_type: str) -> None:
    """No real values are made only to see how many there are."""
    build = Builder(17)
    x = build.dequantize(build.feed("x", ("N", 3), np.uint8), u8(0.1))
    build.output(build.node(op_type, [x]), np.int64)
    model = build.model(infer=False)
    graph = intonnx.import_model(model)
    assert "qnn.dequantize" not in {node.op.name for node in graph.nodes}
    codes = np.zeros((5, 3), np.uint8)
    (found,) = intonnx.compile(graph).run({"x": codes}).values()
    assert found.tolist() == ([5, 3] if op_type == "Shape" else 15)
    (exported,) = run_onnxruntime(intonnx.to_onnx(graph), {"x": codes}, optimized=False).values()
    np.testing.assert_array_equal(exported, found)
