"""`intonnx compile`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from intonnx.ir.archive import replacing
from intonnx.ir.graph import Graph
from intonnx.lowering.executable import compile_graph
from intonnx.lowering.export import to_onnx
from intonnx.lowering.multipliers import multipliers
from intonnx.lowering.numerics import Numerics
from intonnx.lowering.qlinear.emitter import Form, Runtime
from intonnx.standalone.bundle import write_program

from .display import show
from .files import about, open_graph
from .progress import working

NUMERICS_KEY = "numerics"
"""Where a saved graph's metadata say what arithmetic it is compiled for."""


def write_onnx(model: Path, output: Path, form: Form, runtime: Runtime) -> None:
    """Write the model as ONNX. Raises IntonnxError; then there is no new file."""
    with working("compiling"), about(model):
        exported = to_onnx(open_graph(model), form, runtime)
    with replacing(output) as file:
        file.write(exported.SerializeToString())
    operators = len(exported.graph.node)
    show(f"{output}: ONNX model with {operators} operators, form {form}, for {runtime}")


def write_integer(model: Path, output: Path, numerics: Numerics) -> None:
    """Save the graph with its numerics. Raises IntonnxError; then there is no new file."""
    with working("compiling"), about(model):
        graph = open_graph(model)
        compile_graph(graph, numerics)
        graph = replace(graph, metadata={**graph.metadata, NUMERICS_KEY: numerics})
    graph.save(output)
    operators = len(graph.nodes)
    show(f"{output}: graph with {operators} operators, to be run with numerics {numerics}")
    _show_multipliers(graph, numerics)


def write_standalone(model: Path, output: Path, numerics: Numerics) -> None:
    """Write a program that needs numpy alone. Raises IntonnxError; then there is no new file."""
    with working("compiling"), about(model):
        graph = open_graph(model)
        write_program(graph, output, numerics)
    show(f"{output}: program with {len(graph.nodes)} operators, numerics {numerics}; try")
    show(f"  python {output} --help")
    _show_multipliers(graph, numerics)


def _show_multipliers(graph: Graph, numerics: Numerics) -> None:
    """How near the multipliers of `fixed` come to the quotients of scales that they stand for."""
    found = multipliers(graph) if numerics == "fixed" else ()
    if found:
        worst = max(found, key=lambda node: node.error)
        count = sum(factor.m.size for node in found for factor in node.multipliers)
        show(
            f"{count} multipliers, at most {worst.error:.1e} of the exact factor away: {worst.node}"
        )
