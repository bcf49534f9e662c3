"""A child that takes hostile files one after the other, in 2 GB of address space.

Started as `python -m hostile.worker FOLDER`. Reads the length of a pickled `Case` and the case from
its standard input and answers each with one line of JSON: kind, detail, seconds.
"""

from __future__ import annotations

import json
import os
import pickle
import resource
import shutil
import struct
import sys
import time
import traceback
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import intonnx
from intonnx.ir.text import print_graph, weights_of
from intonnx.ir.types import Array, DType
from intonnx.lowering import control_flow

from .cases import Case

MEMORY = 2 << 30
"""Bytes of address space."""
LARGEST_INPUT = 1 << 20
"""Inputs with more elements are not made: it is their owner who would ask for the memory."""
LONGEST_MESSAGE = 4000
LONGEST_LOOP = 200
"""Turns of a Loop: a model may never end, and until the product's own limit takes longer."""
NUMERICS = ("qlinear", "qdq", "fixed")


def main(folder: Path) -> None:
    """Answer until the standard input ends."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    answers = os.fdopen(os.dup(1), "w")
    control_flow.MAX_TURNS = LONGEST_LOOP
    os.dup2(2, 1)  # what libraries print must not be taken for an answer
    warnings.simplefilter("ignore")
    while len(head := sys.stdin.buffer.read(8)) == 8:
        case: Case = pickle.loads(sys.stdin.buffer.read(struct.unpack("<Q", head)[0]))
        start = time.perf_counter()
        kind, detail = judge(case, folder)
        answers.write(json.dumps([kind, detail, time.perf_counter() - start]) + "\n")
        answers.flush()


def judge(case: Case, folder: Path) -> tuple[str, str]:
    """Everything that the product does with a file of this kind."""
    path = _written(case, folder)
    try:
        graph = _read(path, case)
        _use(graph)
    except intonnx.IntonnxError as error:
        return _judged_error(error, path)
    except BaseException as error:  # a wrong outcome is reported, whatever it is
        frames = traceback.extract_tb(error.__traceback__)[-4:]
        where = " < ".join(f"{Path(f.filename).name}:{f.lineno} {f.name}" for f in frames[::-1])
        return "wrong", f"{type(error).__name__}: {str(error)[:300]} at {where}"
    return "result", ""


def _written(case: Case, folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, data in case.files.items():
        (folder / name).write_bytes(data)
    for name, target in case.links.items():
        (folder / name).symlink_to(target)
    path = folder / case.kind
    path.write_bytes(case.data)
    return path


def _read(path: Path, case: Case) -> intonnx.Graph:
    if case.kind == "model.onnx":
        return intonnx.import_model(path)
    if case.kind == "graph.intonnx":
        return intonnx.load(path)
    arrays: dict[str, Array] = {}
    with np.load(path.with_name("arrays.npz"), allow_pickle=False) as found:
        arrays.update(found)
    return intonnx.parse(path.read_text("utf-8", "surrogateescape"), arrays)


def _use(graph: intonnx.Graph) -> None:
    """Report, print, compile, run and export. An operator that cannot run may still be exported."""
    intonnx.coverage(graph)
    intonnx.parse(print_graph(graph), weights_of(graph))
    failures: list[intonnx.IntonnxError] = []
    inputs = _inputs(graph)
    for numerics in NUMERICS:
        try:
            executable = intonnx.compile(graph, numerics=numerics)
            if inputs is not None:
                executable.run(inputs)
        except intonnx.IntonnxError as error:
            failures.append(error)
    for form in ("qlinear", "qdq"):
        try:
            intonnx.to_onnx(graph, form=form)
        except intonnx.IntonnxError as error:
            failures.append(error)
    if failures:
        raise failures[0]


def _inputs(graph: intonnx.Graph) -> Mapping[str, Any] | None:
    """Small random inputs; None where they would be large or are no tensors."""
    rng = np.random.default_rng(0)
    made: dict[str, Any] = {}
    for name in graph.inputs:
        kind = graph.types[name]
        shape = [2 if isinstance(size, str) else size for size in kind.shape or ()]
        count = 1
        for size in shape:
            count *= size
        if kind.dtype in (DType.CONTAINER, DType.STRING) or count > LARGEST_INPUT:
            return None
        values = rng.integers(0, 2 if kind.dtype is DType.BOOL else 4, shape)
        made[name] = values.astype(kind.dtype.numpy)
    return made


def _judged_error(error: intonnx.IntonnxError, path: Path) -> tuple[str, str]:
    text = str(error)
    if isinstance(error, intonnx.ImportFailure) and str(path) not in text:
        return "wrong", f"the error does not name the file: {text[:300]}"
    if not error.cause.strip() or not text.isprintable() or len(text) > LONGEST_MESSAGE:
        return (
            "wrong",
            f"the error is not one printable line of a sensible length: {len(text)} {text[:300]!r}",
        )
    return "refused", f"{type(error).__name__}: {text}"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
