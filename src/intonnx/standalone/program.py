"""What a program does: read the graph beside it, compile it, run it on arrays.

This file and all that it imports are copied into every program.
"""

from __future__ import annotations

import argparse
import functools
import io
import json
import sys
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from intonnx.cli.files import read_inputs, write_arrays, write_trace
from intonnx.ir.errors import IntonnxError
from intonnx.ir.graph import Graph
from intonnx.ir.text import parse
from intonnx.ir.text.types import dims
from intonnx.ir.types import Array
from intonnx.lowering.executable import Executable, compile_graph

GRAPH, MANIFEST, WEIGHTS = "graph.txt", "manifest.json", "weights"


class Program:
    """The model in a package: its text, its weights and what they are called."""

    def __init__(self, package: str) -> None:
        self._package = package
        self._place = resources.files(package)

    @functools.cached_property
    def manifest(self) -> dict[str, Any]:
        """Which numerics, which version made it, and the file of each weight."""
        found: dict[str, Any] = json.loads(self._place.joinpath(MANIFEST).read_text("utf-8"))
        return found

    @functools.cached_property
    def executable(self) -> Executable:
        """The compiled model."""
        graph = parse(self._place.joinpath(GRAPH).read_text("utf-8"), self._weights())
        return compile_graph(graph, self.manifest["numerics"])

    @property
    def graph(self) -> Graph:
        """The typed graph: `str(graph)` is its text."""
        return self.executable.graph

    def _weights(self) -> dict[str, Array]:
        folder = self._place.joinpath(WEIGHTS)
        found: dict[str, Array] = {}
        for name, file in self.manifest["weights"].items():
            data = io.BytesIO(folder.joinpath(file).read_bytes())
            found[name] = np.load(data, allow_pickle=False)
        return found

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """The outputs by name; takes and raises what `intonnx.Executable.run` does."""
        return self.executable.run(inputs)

    def trace(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Every value by name; takes and raises what `intonnx.Executable.trace` does."""
        return self.executable.trace(inputs)

    def main(self, arguments: Sequence[str] | None = None) -> int:
        """Run the command line. Returns the exit code: 0, or 2 for bad input."""
        options = self._parser().parse_args(arguments)
        try:
            if options.signature:
                self._show()
                return 0
            if options.output is None:
                raise IntonnxError("no output: add -o OUT.npz")
            self._run(options.input, Path(options.output), options.trace)
        except IntonnxError as error:
            print(f"{self._package}: error: {error}", file=sys.stderr)
            return 2
        return 0

    def _parser(self) -> argparse.ArgumentParser:
        made_by = f"compiled by intonnx {self.manifest['version']}"
        parser = argparse.ArgumentParser(
            prog=self._package,
            description=f"Run a quantized model in integers ({made_by}, "
            f"numerics {self.manifest['numerics']}). It needs Python and numpy.",
        )
        parser.add_argument(
            "-i", "--input", action="append", default=[], metavar="NAME=FILE.npy",
            help="array for one input, or one .npz with all of them; repeatable",
        )  # fmt: skip
        parser.add_argument("-o", "--output", metavar="OUT.npz", help="file for the outputs")
        parser.add_argument("--trace", metavar="OUT.npz", help="file for every inner value")
        parser.add_argument(
            "--signature", action="store_true", help="print inputs and outputs, and stop"
        )
        return parser

    def _show(self) -> None:
        for kind, names in (("input", self.graph.inputs), ("output", self.graph.outputs)):
            for name in names:
                found = self.graph.types[name]
                print(f"{kind} {name} {found.dtype.value}{dims(found.shape)}")

    def _run(self, inputs: Sequence[str], output: Path, trace: str | None) -> None:
        arrays = read_inputs(self.graph, inputs)
        if trace is None:
            outputs = self.run(arrays)
        else:
            values = self.trace(arrays)
            outputs = {name: values[name] for name in self.graph.outputs}
            write_trace(Path(trace), values, self.graph)
        write_arrays(output, outputs, self.graph)
