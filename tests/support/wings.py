"""A model through every wing of the product, held against onnxruntime."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx

import intonnx
from support.models import Array
from support.runtime import run_onnxruntime

Arrays = Mapping[str, Array]


def check_model(
    model: onnx.ModelProto,
    inputs: Arrays,
    *,
    quanta: int = 1,
    literal_quanta: int = 0,
    export_quanta: int = 0,
    kernel: bool = True,
    floats: int = 0,
) -> intonnx.Graph:
    """Import a model; every lowering of it gives what onnxruntime gives without optimization.

    At most `quanta` codes apart under the qlinear numerics, `literal_quanta` under qdq, where
    onnxruntime runs the QDQ form of the export. The default export is to what our integers give
    `export_quanta` apart, without optimization and (with `kernel`: its operators exist as written)
    with it. What was exported imports again and computes the same. `floats` nodes stay float.
    """
    graph = intonnx.import_model(model)
    assert intonnx.coverage(graph).float == floats, intonnx.coverage(graph).nodes
    wanted = run_onnxruntime(model, inputs, optimized=False)
    integer = intonnx.compile(graph).run(inputs)
    apart(integer, wanted, quanta)
    apart(intonnx.compile(graph, numerics="qdq").run(inputs), wanted, literal_quanta)
    exported = intonnx.to_onnx(graph)
    for optimized in (False, True) if kernel else (False,):
        apart(run_onnxruntime(exported, inputs, optimized=optimized), integer, export_quanta)
    apart(intonnx.compile(intonnx.import_model(exported)).run(inputs), integer, 0)
    literal = intonnx.to_onnx(graph, form="qdq")
    apart(run_onnxruntime(literal, inputs, optimized=False), wanted, literal_quanta)
    return graph


def apart(found: Arrays, wanted: Arrays, quanta: int) -> None:
    """Assert equal names, types and shapes, and values at most so many codes apart."""
    assert list(found) == list(wanted)
    for name, array in found.items():
        other = wanted[name]
        assert (array.dtype, array.shape) == (other.dtype, other.shape), name
        if quanta == 0 or array.dtype.kind == "f":
            np.testing.assert_array_equal(array, other, err_msg=name)
        else:
            difference = np.abs(array.astype(np.int64) - other.astype(np.int64))
            assert difference.max(initial=0) <= quanta, name


def refusal_of(model: onnx.ModelProto, op_type: str) -> tuple[str, str]:
    """Code and detail of the refusal of the one operator of this type."""
    nodes: list[Any] = [
        node
        for node in intonnx.coverage(intonnx.import_model(model)).nodes
        if node.op.split(".")[-1] == op_type
    ]
    assert [node.state for node in nodes] == ["float"]
    return nodes[0].code, nodes[0].detail
