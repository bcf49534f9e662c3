"""Sizes that are known at import although another axis is not."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, helper, numpy_helper

import intonnx
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
