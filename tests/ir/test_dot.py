"""DOT text, read back by pydot."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import intonnx
from intonnx.ir.dot import print_dot
from support.models import Builder, Fed, Held, s8, u8


def graph_of(name: str = "conv") -> intonnx.Graph:
    """x -> Q -> Conv -> Q -> DQ -> Hardmax -> y."""
    build = Builder(17)
    x = build.operand(Fed("x", ("N", 3, 6, 6), u8(0.02, 114)), 0)
    w = build.operand(Held(np.ones((4, 3, 3, 3)), s8(0.01)), 1)
    value = build.node("Conv", [x, w], name=name)
    value = build.dequantize(build.quantize(value, u8(0.05, 100), "codes"), u8(0.05, 100))
    build.node("Hardmax", [value], name="y")
    build.output("y", np.float32)
    return intonnx.import_model(build.model())


def read(text: str) -> Any:
    pydot = pytest.importorskip("pydot", reason="pydot is of the development group")
    with warnings.catch_warnings():
        # It calls old names of the parser library under it.
        warnings.simplefilter("ignore")
        (found,) = pydot.graph_from_dot_data(text)
    return found


def unquoted(item: Any, attribute: str) -> str:
    value: str = item.get(attribute)
    return value[1:-1].replace('\\"', '"')


def test_boxes_and_edges_are_operators_and_values() -> None:
    graph = graph_of()
    found = read(print_dot(graph))
    boxes = {n.get_name(): n for n in found.get_nodes() if n.get_name().startswith("node")}
    boxes.pop("node", None)  # the default attributes
    assert len(boxes) == len(graph.nodes)
    for index, node in enumerate(graph.nodes):
        assert unquoted(boxes[f"node{index}"], "label").startswith(node.op.title)
    wanted = sum(
        len({n for n in node.operands if n and n not in graph.constants}) for node in graph.nodes
    )
    assert len(found.get_edges()) == wanted + len(graph.outputs)


def test_colors_and_reasons_are_those_of_the_coverage() -> None:
    graph = graph_of()
    found = {n.get_name(): n for n in read(print_dot(graph)).get_nodes()}
    colors = [unquoted(found[f"node{i}"], "fillcolor") for i in range(len(graph.nodes))]
    titles = [node.op.title for node in graph.nodes]
    assert colors[titles.index("qnn.conv2d")] == "#b7e1c0"
    assert colors[titles.index("onnx.Hardmax")] == "#f4b8ae"
    assert "no-integer-form" in unquoted(found[f"node{titles.index('onnx.Hardmax')}"], "label")


def test_names_are_only_names() -> None:
    name = 'a"b\\c\n]; node [x'
    found = read(print_dot(graph_of(name)))
    labels = [unquoted(n, "label") for n in found.get_nodes() if n.get("label")]
    assert any("a" in label and "b" in label and "node [x" in label for label in labels)
