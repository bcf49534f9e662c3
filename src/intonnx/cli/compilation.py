"""`intonnx compile`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import onnx

from intonnx.ir.archive import replacing
from intonnx.ir.graph import Graph
from intonnx.lowering.executable import compile_graph
from intonnx.lowering.explanation import InexactNode
from intonnx.lowering.export import export
from intonnx.lowering.multipliers import multipliers
from intonnx.lowering.numerics import Numerics
from intonnx.lowering.qlinear.emitter import Form, Runtime
from intonnx.lowering.shaping.pipeline import Cpu
from intonnx.standalone.bundle import write_program
from intonnx.verification.runtime import integer_share, is_installed

from .display import percent, show, show_table
from .files import about, is_saved_graph, open_graph
from .progress import working

NUMERICS_KEY = "numerics"
"""Where a saved graph's metadata say what arithmetic it is compiled for."""


def write_onnx(
    model: Path, output: Path, form: Form, runtime: Runtime, cpu: Cpu, opset: int | None,
    *, explain: bool,
) -> None:  # fmt: skip
    """Write the model as ONNX. Raises IntonnxError; then there is no new file."""
    with working("compiling"), about(model):
        graph = open_graph(model)
        exported = export(graph, form, runtime, cpu, opset)
    with replacing(output) as file:
        file.write(exported.model.SerializeToString())
    before, after = _original(model), exported.model.graph.node
    target = f"{runtime} on {cpu}" if runtime == "onnxruntime" else runtime
    show(f"{output}: ONNX model with {len(after)} operators, form {form}, for {target}")
    for step in exported.steps:
        show(f"  {step.title}: {step.nodes} nodes")
    if before is not None:
        show(f"nodes             {len(before.graph.node)} before, {len(after)} after")
        found = [_share(m) for m in (before, exported.model)]
        if all(found):
            show(f"integer operators {found[0]} before, {found[1]} after, as onnxruntime runs them")
    if explain:
        _explain(exported.inexact())


def _original(model: Path) -> onnx.ModelProto | None:
    """The model that is compiled, None for a saved graph."""
    return None if is_saved_graph(model) else onnx.load(model)


def _share(model: onnx.ModelProto) -> str:
    """The share of operators that onnxruntime runs on integers; "" where it does not run them."""
    found = integer_share(model) if is_installed() else None
    return "" if found is None else f"{percent(*found)} ({found[0]} of {found[1]})"


def _explain(nodes: Sequence[InexactNode]) -> None:
    show()
    if not nodes:
        show("every operator gives what the integer execution gives, bit for bit")
        return
    show("operators whose kernels do not promise the bits of the integer execution:")
    show_table(("node", "why", "what"), [(n.node, n.code, n.detail) for n in nodes])


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
