"""The names that users may rely on: a change here is a change of the product."""

from __future__ import annotations

import inspect

import intonnx

PUBLIC = {
    "AccumulatorRange", "CompileFailure", "Coverage", "Executable", "ExportFailure", "Graph",
    "ImportFailure", "IntonnxError", "NodeCoverage", "RunFailure", "TextFailure", "TypeFailure",
    "accumulator_ranges", "compile", "coverage", "import_model", "load", "multipliers", "parse",
    "to_onnx",
}  # fmt: skip


def test_the_public_names_are_these() -> None:
    assert set(intonnx.__all__) == PUBLIC
    for name in intonnx.__all__:
        assert inspect.getdoc(getattr(intonnx, name)), f"{name} has no docstring"


def parameters(function: object) -> list[str]:
    assert callable(function)
    return list(inspect.signature(function).parameters)


def test_signatures_begin_with_what_is_documented() -> None:
    assert parameters(intonnx.import_model)[0] == "source"
    assert parameters(intonnx.compile)[:2] == ["graph", "numerics"]
    assert parameters(intonnx.to_onnx)[:3] == ["graph", "form", "runtime"]
    assert parameters(intonnx.parse) == ["text", "weights"]
    assert parameters(intonnx.Executable.run) == ["self", "inputs"]
    assert parameters(intonnx.Executable.trace)[:2] == ["self", "inputs"]
    counts = {"integer", "float", "boundary", "folded"}
    assert counts <= {name for name in dir(intonnx.Coverage) if not name.startswith("_")}
    fields = set(intonnx.NodeCoverage.model_fields)
    assert {"name", "op", "state", "code", "detail"} <= fields
