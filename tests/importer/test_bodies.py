"""Codes that a body reads from outside: what is between quantizers in it becomes integer."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import intonnx
from intonnx.ir.text import weights_of
from support.runtime import run_onnxruntime

Array = np.ndarray[Any, Any]


def value(name: str, shape: list[int], element: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, element, shape)


def branch(key: str, read: str) -> onnx.GraphProto:
    """A product of a value from outside by the branch's weights, between quantizers."""
    nodes = [
        helper.make_node("DequantizeLinear", [f"w_{key}", "w_s"], [f"{key}_w"]),
        helper.make_node("MatMul", [read, f"{key}_w"], [f"{key}_m"]),
        helper.make_node("QuantizeLinear", [f"{key}_m", "o_s", "o_z"], [f"{key}_q"]),
        helper.make_node("DequantizeLinear", [f"{key}_q", "o_s", "o_z"], [f"{key}_o"]),
    ]
    return helper.make_graph(nodes, key, [], [value(f"{key}_o", [2, 4])])


def chosen(inner: onnx.GraphProto, other: onnx.GraphProto, result: str) -> onnx.NodeProto:
    return helper.make_node(
        "If", ["c"], [result], f"if_{result}", then_branch=inner, else_branch=other
    )


def network(*, deep: bool) -> onnx.ModelProto:
    """Codes made outside, dequantized outside, and read in both branches, or one body deeper."""
    rng = np.random.default_rng(0)
    constants = {
        "s": np.float32(0.02), "z": np.uint8(120), "w_s": np.float32(0.01),
        "o_s": np.float32(0.05), "o_z": np.uint8(100),
        **{f"w_{k}": rng.integers(0, 2, (3, 4)).astype(np.int8) * 60 - 30 for k in "abd"},
    }  # fmt: skip
    inner = branch("a", "d")
    if deep:
        node = chosen(branch("d", "d"), inner, "deep")
        inner = helper.make_graph([node], "between", [], [value("deep", [2, 4])])
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"], "the_dq"),
        chosen(inner, branch("b", "d"), "y"),
    ]
    graph = helper.make_graph(
        nodes, "g", [value("x", [2, 3]), value("c", [], TensorProto.BOOL)], [value("y", [2, 4])],
        [numpy_helper.from_array(np.asarray(a), key) for key, a in constants.items()],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize("deep", [False, True])
def test_products_of_captured_codes_are_integer(deep: bool) -> None:
    model = network(deep=deep)
    graph = intonnx.import_model(model)
    nodes = intonnx.coverage(graph).nodes
    assert [n.name for n in nodes if n.state == "float"] == []
    assert {n.state for n in nodes if n.op == "MatMul"} == {"integer"}
    # What dequantizes outside is one node of the model, wherever its work is done.
    assert [n.name for n in nodes if n.name.endswith(("the_dq", "/d"))] == ["the_dq"]
    assert intonnx.parse(str(graph), weights=weights_of(graph)) == graph
    executable = intonnx.compile(graph)
    exports = [intonnx.to_onnx(graph), intonnx.to_onnx(graph, form="qdq")]
    rng = np.random.default_rng(1)
    for flag in (True, False):
        given = {"x": rng.normal(size=(2, 3)).astype(np.float32), "c": np.asarray(flag)}
        found = executable.run(given)["y"]
        for written in (model, *exports):
            literal = run_onnxruntime(written, given, optimized=False)["y"]
            np.testing.assert_array_equal(found, literal)
