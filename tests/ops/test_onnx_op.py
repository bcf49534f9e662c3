"""Operators that the IR does not model: kept, run by the reference operators, written verbatim."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import intonnx
from intonnx.ir.ops.onnx_op import OnnxOp, Opaque
from intonnx.ir.types import DType, plain
from support.runtime import run_onnxruntime

Array = np.ndarray[Any, Any]
F32 = TensorProto.FLOAT


def model(
    nodes: list[onnx.NodeProto],
    opset: int,
    shape: list[int | str],
    result: list[int | str],
    constants: dict[str, Array] | None = None,
) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "kept",
        [helper.make_tensor_value_info("x", F32, shape)],
        [helper.make_tensor_value_info("y", F32, result)],
        [numpy_helper.from_array(array, name) for name, array in (constants or {}).items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def check(kept: onnx.ModelProto, x: Array) -> onnx.ModelProto:
    """Run the import and the export beside the model itself; returns the export."""
    graph = intonnx.import_model(kept)
    literal = run_onnxruntime(kept, {"x": x}, optimized=False)["y"]
    exported = intonnx.to_onnx(graph)
    # Two implementations of float operators: a few units in the last place.
    np.testing.assert_allclose(
        intonnx.compile(graph).run({"x": x})["y"], literal, rtol=1e-5, atol=1e-6
    )
    again = run_onnxruntime(exported, {"x": x}, optimized=False)["y"]
    np.testing.assert_allclose(again, literal, rtol=1e-6, atol=1e-7)
    assert intonnx.parse(str(graph), weights=graph.constants) == graph
    return exported


def reals(*shape: int) -> Array:
    return np.random.default_rng(3).normal(size=shape).astype(np.float32)


def test_c1_has_as_many_operands_as_captures() -> None:
    op = OnnxOp(op_type="If", version=17, types=(plain(DType.F32, ()),), captures=2)
    with pytest.raises(intonnx.TypeFailure, match="C1"):
        op.infer([plain(DType.BOOL, ())])


def test_attributes_of_every_kind_are_written_as_they_were() -> None:
    tensor = numpy_helper.from_array(np.asarray([2.5], np.float32))
    node = helper.make_node(
        "Custom", ["x"], ["y"], "the_node", domain="some.where",
        i=3, f=0.1, s="text", ints=[1, 2], floats=[0.1, 2.0], strings=["a", "b"], t=tensor,
    )  # fmt: skip
    node.attribute.append(onnx.AttributeProto(name="empty", type=onnx.AttributeProto.INTS))
    kept = model([node], 17, [2], [2])
    kept.opset_import.append(helper.make_opsetid("some.where", 5))
    graph = intonnx.import_model(kept)
    (op,) = (n.op for n in graph.nodes)
    assert isinstance(op, OnnxOp)
    assert op.title == "onnx.some.where.Custom"
    assert isinstance(op.attributes["t"], Opaque)
    exported = intonnx.to_onnx(graph)
    assert sorted(exported.graph.node[0].attribute, key=lambda a: a.name) == sorted(
        node.attribute, key=lambda a: a.name
    )
    assert exported.graph.node[0].name == "the_node"
    assert {entry.domain: entry.version for entry in exported.opset_import}["some.where"] == 5
    with pytest.raises(intonnx.CompileFailure, match="the_node"):
        intonnx.compile(graph)


def test_a_branch_reads_values_of_the_graph_around_it() -> None:
    def branch(op: str) -> onnx.GraphProto:
        nodes = [helper.make_node(op, ["x", "c"], [f"{op}_out"])]
        return helper.make_graph(
            nodes, op, [], [helper.make_tensor_value_info(f"{op}_out", F32, [3])]
        )

    nodes = [
        helper.make_node("ReduceMax", ["x"], ["top"], keepdims=0),
        helper.make_node("Greater", ["top", "limit"], ["cond"]),
        helper.make_node(
            "If", ["cond"], ["y"], then_branch=branch("Mul"), else_branch=branch("Add")
        ),
    ]
    constants = {"c": np.asarray([1, 2, 3], np.float32), "limit": np.asarray(1, np.float32)}
    kept = model(nodes, 17, [3], [3], constants)
    for x in (np.asarray([5, 1, 2], np.float32), np.asarray([0, -1, 0.5], np.float32)):
        check(kept, x)
    node = next(n for n in intonnx.import_model(kept).nodes if n.op.title == "onnx.If")
    # Constants from outside are the body's own, see docs/adr/0006.
    assert node.operands == ("cond", "x")


@pytest.mark.parametrize(
    ("op_type", "attributes", "operands"),
    [
        ("Softmax", {"axis": 1}, ["x"]),
        ("ReduceSum", {"axes": [1], "keepdims": 1}, ["x"]),
        ("Unsqueeze", {"axes": [0]}, ["x"]),
    ],
)
def test_operators_of_old_opsets_keep_their_meaning(
    op_type: str, attributes: dict[str, Any], operands: list[str]
) -> None:
    """The export is of opset 13 at least, where these read their inputs otherwise."""
    result: list[int | str] = {"ReduceSum": [2, 1, 4], "Unsqueeze": [1, 2, 3, 4]}.get(
        op_type, [2, 3, 4]
    )  # type: ignore[assignment]
    node = helper.make_node(op_type, operands, ["y"], **attributes)
    exported = check(model([node], 11, [2, 3, 4], result), reals(2, 3, 4))
    assert next(e.version for e in exported.opset_import if e.domain == "") >= 13


def test_an_operator_without_a_conversion_is_refused_by_name() -> None:
    node = helper.make_node("Hardmax", ["x"], ["y"], "the_hardmax")
    graph = intonnx.import_model(model([node], 11, [2, 3], [2, 3]))
    with pytest.raises(intonnx.ExportFailure, match=r"the_hardmax.*opset 11"):
        intonnx.to_onnx(graph)


def test_a_kept_operator_names_itself_when_it_fails() -> None:
    nodes = [helper.make_node("Gather", ["x", "far"], ["y"], "the_gather")]
    kept = model(nodes, 17, ["N"], [1], {"far": np.asarray([9], np.int64)})
    executable = intonnx.compile(intonnx.import_model(kept))
    with pytest.raises(intonnx.RunFailure, match="the_gather"):
        executable.run({"x": np.zeros(3, np.float32)})
