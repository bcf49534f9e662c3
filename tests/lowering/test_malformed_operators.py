"""Operators that only an edited text can have: each fails with its node's name."""

from __future__ import annotations

import numpy as np
import pytest

import intonnx
from hostile import bases
from intonnx.ir.text import print_graph, weights_of
from intonnx.lowering import control_flow


def edited(old: str, new: str) -> intonnx.Graph:
    """The graph with an If and a Loop, its text changed."""
    graph = intonnx.import_model(bases.bodies())
    text = print_graph(graph)
    assert old in text
    return intonnx.parse(text.replace(old, new), weights_of(graph))


@pytest.mark.parametrize("branch", ["then_branch", "else_branch"])
def test_an_if_without_one_of_its_branches(branch: str) -> None:
    with pytest.raises(intonnx.CompileFailure, match=branch) as caught:
        intonnx.compile(edited(branch, "another_branch"))
    assert caught.value.node is not None


def test_a_scan_that_is_a_loop() -> None:
    with pytest.raises(intonnx.IntonnxError) as caught:
        intonnx.compile(edited("onnx.Loop", "onnx.Scan"))
    assert caught.value.node is not None


def test_a_loop_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control_flow, "MAX_TURNS", 2)
    executable = intonnx.compile(intonnx.import_model(bases.bodies()))
    with pytest.raises(intonnx.RunFailure, match="not ended after 2 turns") as caught:
        executable.run({"x": np.zeros((2, 3), np.float32)})
    assert "Loop" in str(caught.value)


def test_more_results_than_the_body_has() -> None:
    model = bases.bodies()
    model.graph.node[2].output.append("extra")
    model.graph.output.append(model.graph.output[0])
    model.graph.output[1].name = "extra"
    with pytest.raises(intonnx.IntonnxError, match="If"):
        intonnx.compile(intonnx.import_model(model)).run({"x": np.zeros((2, 3), np.float32)})
