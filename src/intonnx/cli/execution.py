"""`intonnx run`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from intonnx.golden.header import write_header
from intonnx.golden.hexadecimal import HexIndex, write_hex
from intonnx.ir.archive import replacing
from intonnx.ir.text.types import dims
from intonnx.ir.types import Array
from intonnx.lowering.executable import Executable, compile_graph
from intonnx.lowering.numerics import Numerics
from intonnx.lowering.profile import OperatorProfile, trace_events

from .compilation import NUMERICS_KEY
from .display import show, show_table
from .files import TYPES, about, open_graph, read_inputs, write_arrays, write_trace
from .profiling import show_profile
from .progress import working


def run_model(
    model: Path,
    inputs: Sequence[str],
    output: Path,
    trace: Path | None,
    hexadecimal: Path | None,
    header: Path | None,
    numerics: Numerics | None,
    profile: bool = False,
    profile_trace: Path | None = None,
) -> None:
    """Run a model on arrays from files.

    Raises IntonnxError; then each file is whole or not there, and the outputs are not.
    """
    index: HexIndex | None = None
    traced = arrays_written = 0
    steps: tuple[OperatorProfile, ...] = ()
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
        if profile or profile_trace is not None:
            steps = _profile(executable, arrays, str(model), profile_trace)
        if header is not None:
            arrays_written = write_header(graph, header, model.stem)
        write_arrays(output, outputs, graph)
    _show_outputs(output, executable, outputs)
    if profile:
        show()
        show_profile(steps)
    written = {
        profile_trace: f"{len(steps)} steps, for Perfetto or chrome://tracing",
        trace: f"{traced} values, their types under '{TYPES}'",
        header: f"C header with {arrays_written} arrays",
        hexadecimal: f"{len(index.files) if index else 0} files of hexadecimal numbers "
                     "and index.json",
    }  # fmt: skip
    for path, text in written.items():
        if path is not None:
            show(f"{path}: {text}")


def _show_outputs(output: Path, executable: Executable, arrays: Mapping[str, Array]) -> None:
    show(f"{output}: numerics {executable.numerics}")
    types = executable.graph.types
    rows = [(name, types[name].dtype, dims(array.shape)) for name, array in arrays.items()]
    show_table(("", "", ""), rows)


def _profile(
    executable: Executable, arrays: Mapping[str, Array], title: str, output: Path | None
) -> tuple[OperatorProfile, ...]:
    steps = executable.profile(arrays)
    if output is not None:
        with replacing(output) as file:
            file.write(trace_events(steps, f"{title} ({executable.numerics})").encode())
    return steps
