"""Graphs: equality, the verifier, and the rewriter."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from intonnx.ir.errors import IntonnxError, ModelFailure, TypeFailure
from intonnx.ir.graph import Graph, Node, Source
from intonnx.ir.ops.clip import Clip
from intonnx.ir.ops.onnx_op import OnnxOp
from intonnx.ir.ops.quantize import Dequantize, Quantize, Requantize
from intonnx.ir.rewriter import Rewriter
from intonnx.ir.types import DType, QuantParams, TensorType, plain, quantized
from intonnx.ir.verify import agree, verify

U8 = QuantParams(storage=DType.U8, scale=0.5, zero_point=128)
FLOAT, CODES = plain(DType.F32, ("N", 2)), quantized(U8, ("N", 2))
RELU = OnnxOp(op_type="Relu", version=14, types=(FLOAT,))


def source(name: str) -> Source:
    return Source(op="Op", name=name)


def chain(**changes: Any) -> Graph:
    """x -> quantize q -> clip c -> dequantize y."""
    nodes = (
        Node(Quantize(out=U8), ("x",), ("q",), (source("Q"),)),
        Node(Clip(low=0, high=200), ("q",), ("c",), (source("C"),)),
        Node(Dequantize(), ("c",), ("y",), (source("D"),)),
    )
    types = {"x": FLOAT, "q": CODES, "c": CODES, "y": FLOAT}
    return dataclasses.replace(Graph("g", ("x",), ("y",), nodes, types), **changes)


def with_constant(array: Any, kind: TensorType) -> Graph:
    return chain(types={**chain().types, "w": kind}, constants={"w": array})


def test_equal_graphs_are_equal_in_every_part() -> None:
    array = np.zeros(3, np.int8)
    assert chain() == chain()
    others: list[dict[str, Any]] = [
        {"name": "h"},
        {"inputs": ()},
        {"outputs": ("c",)},
        {"nodes": chain().nodes[:2]},
        {"types": {**chain().types, "q": FLOAT}},
        {"constants": {"w": array}},
        {"defaults": {"x": array}},
        {"folded": (source("F"),)},
        {"metadata": {"a": 1}},
    ]
    assert all(chain() != chain(**changes) for changes in others)
    assert chain() != "graph"


def test_arrays_are_compared_by_type_shape_and_bits() -> None:
    def holding(array: Any) -> Graph:
        return chain(constants={"w": array})

    zeros = np.zeros((2, 3), np.float32)
    assert holding(zeros) == holding(np.zeros((3, 2), np.float32).T)
    assert holding(np.array([np.nan])) == holding(np.array([np.nan]))
    assert holding(zeros) != holding(zeros.reshape(3, 2))
    assert holding(zeros) != holding(-zeros)
    assert holding(zeros) != holding(zeros.astype(np.float64))
    words = np.array(["a", "b"], np.object_)
    assert holding(words) == holding(words.copy())
    assert holding(words) != holding(np.array(["a", "c"], np.object_))


def test_graphs_are_not_hashable() -> None:
    with pytest.raises(TypeError, match="unhashable"):
        hash(chain())


def test_producers_and_users() -> None:
    twice = Node(RELU, ("q", "", "q"), ("r", ""))
    graph = chain(nodes=(*chain().nodes, twice), types={**chain().types, "r": FLOAT})
    assert graph.producers["r"] is twice
    assert set(graph.producers) == {"q", "c", "y", "r"}
    assert graph.users["q"] == (graph.nodes[1], twice)
    assert graph.operand_types(twice) == [CODES, None, CODES]


def test_the_networkx_view_holds_values_and_nodes() -> None:
    view = chain().to_networkx()
    assert set(view) == {"%x", "%q", "%c", "%y", "op:0", "op:1", "op:2"}
    assert list(view.successors("%q")) == ["op:1"]
    assert list(view.predecessors("%q")) == ["op:0"]
    assert view.nodes["%q"]["type"] == CODES


def test_labels_name_the_source_or_the_result() -> None:
    assert chain().nodes[0].label == "'Q' (qnn.quantize)"
    assert Node(RELU, (), ("r",)).label == "'r' (onnx.Relu)"
    assert Node(RELU, (), ()).label == "'' (onnx.Relu)"


def test_a_good_graph_verifies() -> None:
    verify(chain())
    verify(with_constant(np.zeros(3, np.int8), plain(DType.I8, (3,))))


WRONG: dict[str, tuple[Graph, str]] = {
    "inputs": (chain(inputs=("x", "x")), "two graph inputs or constants have the same name"),
    "input and constant": (
        chain(constants={"x": np.zeros((1, 2), np.float32)}),
        "two graph inputs or constants have the same name",
    ),
    "empty": (chain(inputs=("x", "")), "a graph input or constant has an empty name"),
    "untyped input": (chain(inputs=("x", "z")), "the value 'z' has no type"),
    "untyped result": (
        chain(types={"x": FLOAT, "q": CODES, "y": FLOAT}),
        r"node 'C' \(qnn.clip\): the value 'c' has no type",
    ),
    "stray type": (
        chain(types={**chain().types, "z": FLOAT}),
        "the value 'z' has a type, but is made by no node",
    ),
    "order": (chain(nodes=chain().nodes[::-1]), r"node 'D' .*: the operand 'c' is not made before"),
    "twice": (
        chain(nodes=(*chain().nodes, chain().nodes[2])),
        r"node 'D' \(qnn.dequantize\): the value 'y' is made twice",
    ),
    "output": (chain(outputs=("z",)), "the graph output 'z' is made by no node"),
    "results": (
        chain(nodes=(*chain().nodes[:2], Node(Dequantize(), ("c",), ("y", "z")))),
        "2 results, but the operator has 1",
    ),
    "type": (
        chain(types={**chain().types, "y": plain(DType.F64, ("N", 2))}),
        r"node 'D' .*: 'y' is declared as f64.*, but is f32",
    ),
    "rank": (chain(types={**chain().types, "y": plain(DType.F32, (2,))}), "'y' is declared as"),
    "default": (chain(defaults={"q": np.zeros(1)}), "'q' has a default, but is no graph input"),
    "default type": (
        chain(defaults={"x": np.zeros((1, 2))}),
        "the default of 'x': the array is float64, the type f32",
    ),
    "default shape": (
        chain(defaults={"x": np.zeros((1, 3), np.float32)}),
        r"the default of 'x': the array has shape \(1, 3\), the type \('N', 2\)",
    ),
    "constant type": (
        with_constant(np.zeros(3, np.uint8), plain(DType.I8, (3,))),
        "the constant 'w': the array is uint8, the type i8",
    ),
    "constant byte order": (
        with_constant(np.zeros(3, ">i4"), plain(DType.I32, (3,))),
        "the constant 'w': the array is >i4, the type i32",
    ),
    "constant shape": (
        with_constant(np.zeros(3, np.int8), plain(DType.I8, (4,))),
        r"the constant 'w': the array has shape \(3,\), the type \(4,\)",
    ),
    "constant symbol": (
        with_constant(np.zeros(3, np.int8), plain(DType.I8, ("N",))),
        r"the constant 'w': the array has shape \(3,\), the type \('N',\)",
    ),
    "narrow": (
        with_constant(np.array([8], np.int8), plain(DType.I4, (1,))),
        "the constant 'w': the elements 8 to 8 leave the range of i4",
    ),
    "strings": (
        with_constant(np.array([1], np.object_), plain(DType.STRING, (1,))),
        "the constant 'w': not every element is a string",
    ),
    "container": (
        with_constant(np.array([1], np.object_), plain(DType.CONTAINER, (1,))),
        "the constant 'w': a container has no array",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_graph_is_named(case: str) -> None:
    graph, message = WRONG[case]
    with pytest.raises(ModelFailure, match=message):
        verify(graph)


def test_a_violated_constraint_names_the_node() -> None:
    nodes = (*chain().nodes[:2], Node(Quantize(out=U8), ("c",), ("y",)))
    with pytest.raises(
        TypeFailure, match=r"node 'y' \(qnn.quantize\): qnn.quantize C1: "
    ) as caught:
        verify(chain(nodes=nodes))
    assert (caught.value.constraint, caught.value.op) == ("C1", "qnn.quantize")


def test_captures_c1_are_among_the_operands() -> None:
    op = OnnxOp(op_type="If", version=16, types=(), captures=2)
    with pytest.raises(TypeFailure, match=r"onnx\.If C1: 2 captures of 1 operands"):
        verify(chain(nodes=(*chain().nodes, Node(op, ("x",), ()))))


def test_types_agree_apart_from_unknown_sizes() -> None:
    assert agree(plain(DType.F32, ("N", 2)), plain(DType.F32, (3, 2)))
    assert agree(plain(DType.F32, None), plain(DType.F32, (3, 2)))
    assert not agree(plain(DType.F32, (2, 2)), plain(DType.F32, (3, 2)))
    assert not agree(plain(DType.U8, (2,)), quantized(U8, (2,)))


def test_a_rewriter_that_does_nothing_changes_nothing() -> None:
    assert Rewriter(chain()).finish() == chain()


def test_dead_nodes_and_constants_go_and_their_sources_are_folded() -> None:
    dead = Node(RELU, ("x", "w"), ("r",), (source("R"), source("C")))
    graph = chain(
        nodes=(dead, *chain().nodes),
        types={**chain().types, "r": FLOAT, "w": plain(DType.I8, (1,))},
        constants={"w": np.zeros(1, np.int8)},
        folded=(source("F"),),
    )
    assert Rewriter(graph).finish() == chain(folded=(source("F"), source("R")))


def test_an_absent_operand_keeps_no_dead_node_alive() -> None:
    dead = Node(OnnxOp(op_type="Dead", version=1, types=(FLOAT, FLOAT)), (), ("d", ""))
    user = Node(RELU, ("x", ""), ("r",))
    types = {**chain().types, "d": FLOAT, "r": FLOAT}
    graph = chain(nodes=(dead, *chain().nodes, user), types=types, outputs=("y", "r"))
    assert [node.op.title for node in Rewriter(graph).finish().nodes] == [
        "qnn.quantize", "qnn.clip", "qnn.dequantize", "onnx.Relu",
    ]  # fmt: skip


def test_emitted_nodes_stand_before_their_users() -> None:
    rewriter = Rewriter(chain())
    clip = rewriter.producer_id("c")
    assert clip is not None
    other = QuantParams(storage=DType.U8, scale=0.25, zero_point=0)
    assert rewriter.emit(Requantize(out=other), ["q"], ["r"], before=clip) == ("r",)
    rewriter.update(clip, Node(Clip(low=0, high=200), ("r",), ("c2",)))
    rewriter.types["c2"] = quantized(other, ("N", 2))
    rewriter.replace_uses("c", "c2")
    graph = rewriter.finish()
    verify(graph)
    assert [node.results for node in graph.nodes] == [("q",), ("r",), ("c2",), ("y",)]
    assert graph.folded == (source("C"),)
    assert "c" not in graph.types


def test_emitting_checks_types_and_names_the_node() -> None:
    rewriter = Rewriter(chain())
    with pytest.raises(TypeFailure, match=r"node 'z' \(qnn.dequantize\): qnn.dequantize C1"):
        rewriter.emit(Dequantize(), ["x"], ["z"])
    with pytest.raises(ModelFailure, match="2 results, but the operator has 1"):
        rewriter.emit(Dequantize(), ["q"], ["z", "zz"])
    assert "z" not in rewriter.types


def test_results_may_be_absent_or_fewer() -> None:
    rewriter = Rewriter(chain())
    two = OnnxOp(op_type="Two", version=1, types=(FLOAT, CODES))
    assert rewriter.emit(two, ["x", ""], ["", "b"]) == ("", "b")
    assert rewriter.emit(two, ["x"], ["a"]) == ("a",)
    assert "" not in rewriter.types
    assert (rewriter.types["a"], rewriter.types["b"]) == (FLOAT, CODES)


def test_look_ups_follow_changes() -> None:
    rewriter = Rewriter(chain())
    quantize, clip, dequantize = rewriter.node_ids()
    assert rewriter.user_ids("q") == [clip]
    assert rewriter.producer("x") is None
    assert (rewriter.is_output("y"), rewriter.is_output("q")) == (True, False)
    removed = rewriter.remove(clip)
    assert removed.results == ("c",)
    assert clip not in rewriter
    assert (rewriter.user_ids("q"), rewriter.producer("c")) == ([], None)
    rewriter.replace_uses("c", "q")
    assert rewriter.node(dequantize).operands == ("q",)
    assert rewriter.user_ids("q") == [dequantize]
    assert rewriter.node_ids() == [quantize, dequantize]
    verify(rewriter.finish())


def test_names_stay_unique() -> None:
    rewriter = Rewriter(chain())
    kind, array = plain(DType.I8, (1,)), np.zeros(1, np.int8)
    assert rewriter.fresh("new") == "new"
    assert [rewriter.add_constant("x", array, kind) for _ in range(3)] == ["x.1", "x.2", "x.3"]
    assert rewriter.fresh("x") == "x.4"


def test_a_cycle_is_an_error() -> None:
    rewriter = Rewriter(chain())
    rewriter.replace_uses("x", "c")
    with pytest.raises(ModelFailure, match="the graph has a cycle"):
        rewriter.finish()


def test_a_constant_may_be_an_output() -> None:
    graph = with_constant(np.zeros(3, np.int8), plain(DType.I8, (3,)))
    graph = dataclasses.replace(graph, outputs=("w", "x"))
    found = Rewriter(graph).finish()
    verify(found)
    assert (set(found.constants), found.nodes) == ({"w"}, ())


def test_errors_are_one_line() -> None:
    error = IntonnxError("a\n cause").located(node="'n' (Op)", file="f.onnx")
    assert str(error) == "f.onnx: node 'n' (Op): a cause"
    assert str(error.located(node="other", file="other")) == str(error)
