"""`intonnx run`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from intonnx.golden.header import write_header
from intonnx.golden.hexadecimal import HexIndex, write_hex
from intonnx.ir.text.types import dims
from intonnx.lowering.executable import compile_graph
from intonnx.lowering.numerics import Numerics

from .compilation import NUMERICS_KEY
from .display import show, show_table
from .files import TYPES, about, open_graph, read_inputs, write_arrays, write_trace
from .progress import working


def run_model(
    model: Path,
    inputs: Sequence[str],
    output: Path,
    trace: Path | None,
    hexadecimal: Path | None,
    header: Path | None,
    numerics: Numerics | None,
) -> None:
    """Run a model on arrays from files. Raises IntonnxError; then there is no new file."""
    index: HexIndex | None = None
    traced = arrays_written = 0
    with working("running"), about(model):
        graph = open_graph(model)
        executable = compile_graph(graph, numerics or graph.metadata.get(NUMERICS_KEY, "qlinear"))
        arrays = read_inputs(graph, inputs)
        if trace is None and hexadecimal is None:
            outputs = executable.run(arrays)
        else:
            values = executable.trace(arrays)
            outputs = {name: values[name] for name in graph.outputs}
            if hexadecimal is not None:
                index = write_hex(graph, values, hexadecimal)
            if trace is not None:
                traced = write_trace(trace, values, graph)
        if header is not None:
            arrays_written = write_header(graph, header, model.stem)
        write_arrays(output, outputs, graph)
    show(f"{output}: numerics {executable.numerics}")
    rows = [(name, graph.types[name].dtype, dims(a.shape)) for name, a in outputs.items()]
    show_table(("", "", ""), rows)
    if trace is not None:
        show(f"{trace}: {traced} values, their types under '{TYPES}'")
    if header is not None:
        show(f"{header}: C header with {arrays_written} arrays")
    if index is not None:
        show(f"{hexadecimal}: {len(index.files)} files of hexadecimal numbers and index.json")
