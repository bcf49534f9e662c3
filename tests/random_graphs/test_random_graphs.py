"""Graphs that nobody wrote, held against onnxruntime without optimization.

    INTONNX_HYPOTHESIS=thorough pytest -q tests/random_graphs

draws 5,000 other ones. Every operator reads the reference's own values, so that the documented
quantum of one operator is the limit for each, however long the path is.
"""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import intonnx
from boundaries.census import computes_in_floats
from intonnx.ir.text import print_graph, weights_of
from random_graphs.drawing import Drawer, Drawn
from support.models import Array
from support.runtime import expose, run_onnxruntime

EXAMPLES = 5000 if os.environ.get("INTONNX_HYPOTHESIS") == "thorough" else 30


@settings(max_examples=EXAMPLES)
@given(st.data())
def test_random_graph(data: st.DataObject) -> None:
    drawn = Drawer(data).drawn()
    graph = intonnx.import_model(drawn.model)
    ours = intonnx.compile(graph).run(drawn.inputs)
    _check_operators(graph, drawn)
    _check_round_trips(graph, drawn.inputs, ours)
    _check_exports(graph, drawn.inputs, ours)
    if drawn.batched:
        _check_batches(graph, drawn.inputs, ours)


def _check_operators(graph: intonnx.Graph, drawn: Drawn) -> None:
    found = run_onnxruntime(expose(drawn.model), drawn.inputs, optimized=False, exact=False)
    for numerics, limit in (("qlinear", 1), ("qdq", 1), ("fixed", 2)):
        executable = intonnx.compile(graph, numerics=numerics)
        trace = executable.trace(drawn.inputs, given=_same_types(graph, found))
        for name, array in trace.items():
            theirs = found.get(name)
            if theirs is None or array.dtype != theirs.dtype or array.dtype.kind not in "iu":
                continue
            assert array.shape == theirs.shape, (numerics, name)
            apart = np.abs(array.astype(np.int64) - theirs.astype(np.int64)).max(initial=0)
            allowed = 0 if numerics == "qdq" and name in drawn.exact else limit
            assert apart <= allowed, (numerics, name, apart)


def _same_types(graph: intonnx.Graph, found: dict[str, Array]) -> dict[str, Array]:
    kinds = {name: graph.types[name].dtype.numpy for name in found if name in graph.types}
    return {name: found[name] for name, kind in kinds.items() if found[name].dtype == kind}


def _check_round_trips(graph: intonnx.Graph, inputs: dict[str, Any], ours: Any) -> None:
    again = intonnx.parse(print_graph(graph), weights_of(graph))
    assert again == graph
    _equal(intonnx.compile(again).run(inputs), ours, "text")
    with TemporaryDirectory() as folder:
        graph.save(Path(folder, "g"))
        assert intonnx.load(Path(folder, "g")) == graph


def _check_exports(graph: intonnx.Graph, inputs: dict[str, Any], ours: Any) -> None:
    """The export is a model in QOperator and mixed form: it is imported once more."""
    exported = intonnx.to_onnx(graph)
    _equal(intonnx.compile(intonnx.import_model(exported)).run(inputs), ours, "export imported")
    found = run_onnxruntime(exported, inputs, optimized=False, exact=False)
    if not computes_in_floats(exported):
        _equal(found, ours, "export in onnxruntime")
    run_onnxruntime(intonnx.to_onnx(graph, form="qdq"), inputs, optimized=False, exact=False)


def _check_batches(graph: intonnx.Graph, inputs: dict[str, Any], ours: Any) -> None:
    executable = intonnx.compile(graph)
    for row in range(2):
        found = executable.run({name: x[row : row + 1] for name, x in inputs.items()})
        _equal(found, {name: y[row : row + 1] for name, y in ours.items()}, f"row {row}")


def _equal(found: Any, wanted: Any, what: str) -> None:
    for name, array in wanted.items():
        np.testing.assert_array_equal(found[name], array, err_msg=f"{what}: {name}")
