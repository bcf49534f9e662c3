"""Write a program: one zip with source files, the text of the graph and its weights.

    __main__.py             runs the model: `python model.pyz --input x=image.npy -o out.npz`
    model/__init__.py       run, trace, graph: `sys.path.insert(0, "model.pyz"); import model`
    model/graph.txt         the graph, in the text form
    model/manifest.json     numerics, version, the file of each weight
    model/weights/*.npy     the weights
    model/runtime/...       the source files of intonnx that the graph's operators need

The same graph gives the same bytes. Source: PEP 441 (Python zip applications).
"""

from __future__ import annotations

import io
import json
import keyword
import os
import re
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import numpy as np

from intonnx import __version__
from intonnx.ir.archive import replacing
from intonnx.ir.errors import CompileFailure
from intonnx.ir.graph import Graph, bodies_of
from intonnx.ir.names import identifiers
from intonnx.ir.op import Op
from intonnx.ir.text import print_graph, weights_of
from intonnx.lowering.executable import compile_graph, needs_onnx
from intonnx.lowering.integer.kernel import kernels

from .program import GRAPH, MANIFEST, WEIGHTS
from .sources import closure, is_package, moved

PROGRAM = "intonnx.standalone.program"
_SHEBANG = b"#!/usr/bin/env python3\n"
_DATE = (1980, 1, 1, 0, 0, 0)
_MAIN = """\
import sys

from {name} import program

sys.exit(program.main())
"""
_INIT = '''\
"""A quantized model in exact integers, compiled by intonnx {version}: `run` and `trace` it.

It needs Python 3.11 or later and numpy 2.1 or later.
"""

from {name}.runtime.standalone.program import Program

program = Program(__name__)
run = program.run
trace = program.trace

__all__ = ["program", "run", "trace"]
'''


def write_program(graph: Graph, path: str | os.PathLike[str], numerics: str = "qlinear") -> None:
    """Write a graph as a program that needs Python and numpy alone.

    Run it, `python model.pyz --input x=image.npy -o out.npz`, or import it: with the file on
    `sys.path` the module is called as the file is, without its suffix. Results are those of
    `intonnx.compile(graph, numerics).run`, bit for bit.

    Args:
        graph: a graph without float operators.
        path: the file to write; it appears when it is complete.
        numerics: as for `intonnx.compile`.

    Raises:
        CompileFailure: an operator needs the onnx package to run, or cannot be compiled.
        TextFailure: the file cannot be written.
    """
    for node in graph.nodes:
        if needs_onnx(graph, node):
            cause = "it stayed float, and a program that needs numpy alone cannot run it"
            raise CompileFailure(cause, node=node.label)
    compile_graph(graph, numerics)
    with replacing(path) as file:
        file.write(_SHEBANG)
        _write(graph, module_name(Path(path)), numerics, file)
    Path(path).chmod(0o755)


def module_name(path: Path) -> str:
    """What a program's module is called: as its file, in letters, digits and underscores."""
    name = re.sub(r"\W", "_", path.stem, flags=re.ASCII)
    fits = name.isidentifier() and name.strip("_")
    if not fits or keyword.iskeyword(name) or name in {*sys.stdlib_module_names, "numpy"}:
        name = f"model_{name}"
    return name


def _write(graph: Graph, name: str, numerics: str, file: IO[bytes]) -> None:
    with zipfile.ZipFile(file, "w") as archive:
        for member, text in _texts(graph, name, numerics):
            _add(archive, member, text.encode(), zipfile.ZIP_DEFLATED)
        weights, files = weights_of(graph), _files(graph)
        for key, array in weights.items():
            data = io.BytesIO()
            np.save(data, array, allow_pickle=False)
            _add(archive, f"{name}/{WEIGHTS}/{files[key]}", data.getvalue(), zipfile.ZIP_STORED)


def _texts(graph: Graph, name: str, numerics: str) -> Iterator[tuple[str, str]]:
    yield "__main__.py", _MAIN.format(name=name)
    yield f"{name}/__init__.py", _INIT.format(name=name, version=__version__)
    yield f"{name}/{GRAPH}", print_graph(graph)
    manifest = {"version": __version__, "numerics": numerics, "weights": _files(graph)}
    yield f"{name}/{MANIFEST}", json.dumps(manifest, indent=1)
    for module, source in sorted(closure(_roots(graph)).items()):
        path = module.replace("intonnx", f"{name}/runtime", 1).replace(".", "/")
        path = f"{path}/__init__.py" if is_package(module) else f"{path}.py"
        yield path, moved(source, f"{name}.runtime")


def _files(graph: Graph) -> dict[str, str]:
    return {key: f"{found}.npy" for key, found in identifiers(weights_of(graph)).items()}


def _roots(graph: Graph) -> set[str]:
    """The modules of the operators and of their kernels, and what runs them."""
    ops = set(_operators(graph))
    return {PROGRAM, *(op.__module__ for op in ops), *(kernels.home(op) for op in ops)}


def _operators(graph: Graph) -> Iterator[type[Op]]:
    for node in graph.nodes:
        yield type(node.op)
        for body in bodies_of(node.op).values():
            yield from _operators(body)


def _add(archive: zipfile.ZipFile, member: str, data: bytes, method: int) -> None:
    info = zipfile.ZipInfo(member, _DATE)
    info.compress_type = method
    info.create_system = 3
    info.external_attr = 0o644 << 16
    archive.writestr(info, data)
