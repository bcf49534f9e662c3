"""Every node of the model is reported exactly once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.inliner
import pytest
from onnx import TensorProto, helper, numpy_helper

import intonnx
from intonnx.ir.reasons import Code, reasons_page
from support.corpus import corpus_models

DEMO = Path(intonnx.__file__).parent / "demo_data" / "digits_qdq.onnx"


def nodes_of(path: Path) -> int:
    model = onnx.load(path, load_external_data=False)
    return len(onnx.inliner.inline_local_functions(model).graph.node)


@pytest.mark.parametrize(
    "path",
    [DEMO, *corpus_models("*/*.onnx")],
)
def test_every_node_appears_exactly_once(path: Path) -> None:
    try:
        graph = intonnx.import_model(path)
    except intonnx.ImportFailure as failure:  # tests/corpus says which ones may
        pytest.skip(str(failure))
    coverage = intonnx.coverage(graph)
    assert len(coverage.nodes) == nodes_of(path)
    assert len({(node.op, node.name) for node in coverage.nodes}) == len(coverage.nodes)
    known = {str(code) for code in Code}
    for node in coverage.nodes:
        assert (node.code in known and len(node.detail) > 20) == (node.state == "float")
    counts = coverage.integer + coverage.float + coverage.boundary + coverage.folded
    assert counts == len(coverage.nodes)


def test_nodes_that_share_a_name_are_told_apart() -> None:
    nodes = [
        helper.make_node("Relu", ["x"], ["a"], "same"),
        helper.make_node("Relu", ["a"], ["y"], "same"),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    coverage = intonnx.coverage(intonnx.import_model(model))
    assert [node.name for node in coverage.nodes] == ["a", "y"]


def test_shares_by_node_and_by_multiply_accumulate() -> None:
    """One integer MatMul of 1 x 8 x 4 products and one float MatMul of 1 x 4 x 2."""
    rng = np.random.default_rng(1)
    constants = {
        "s": np.asarray(0.1, np.float32),
        "z": np.asarray(3, np.uint8),
        "w1": rng.integers(0, 9, (8, 4)).astype(np.uint8),
        "w2": rng.normal(size=(4, 2)).astype(np.float32),
    }
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"]),
        helper.make_node("DequantizeLinear", ["w1", "s", "z"], ["w"]),
        helper.make_node("MatMul", ["d", "w"], ["m"]),
        helper.make_node("MatMul", ["m", "w2"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 2])],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    coverage = intonnx.coverage(intonnx.import_model(model))
    assert coverage.integer_share == 0.5
    assert coverage.integer_multiply_accumulate_share == 32 / 40


def test_the_page_of_reason_codes_is_the_generated_one() -> None:
    page = Path(__file__).parents[2] / "docs" / "reason-codes.md"
    if not page.exists():
        pytest.skip("the tests run outside the repository, against an installed wheel")
    assert page.read_text() == reasons_page()
