"""Same input, same bytes, same results: in other processes, threads, batches and BLAS kernels."""

from __future__ import annotations

import gc
import hashlib
import os
import subprocess
import sys
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import intonnx
from intonnx.verification import random_inputs

Array = np.ndarray[Any, Any]
MODEL = Path(str(resources.files("intonnx.demo_data") / "digits_qdq.onnx"))
SRC = Path(intonnx.__file__).resolve().parent.parent

_WRITE = """
import sys
from pathlib import Path
from intonnx.cli import main
model, out = sys.argv[1:]
for arguments in (
    ["compile", model, "-o", f"{out}/a.onnx"],
    ["compile", model, "-o", f"{out}/b.onnx", "--form", "qdq"],
    ["compile", model, "-o", f"{out}/c.intonnx", "--target", "integer"],
    ["compile", model, "-o", f"{out}/d.pyz"],
    ["report", model, "-o", f"{out}/e.html"],
):
    sys.argv = ["intonnx", *arguments]
    try:
        main()
    except SystemExit as end:
        assert not end.code, arguments
"""
_TRACE = """
import hashlib, sys
import numpy as np
import intonnx
graph = intonnx.import_model(sys.argv[1])
x = np.load(sys.argv[2])
digest = hashlib.sha256()
for numerics in ("qlinear", "qdq", "fixed"):
    for name, array in sorted(intonnx.compile(graph, numerics=numerics).trace({"x": x}).items()):
        digest.update(name.encode() + np.ascontiguousarray(array).tobytes())
print(digest.hexdigest())
"""


def child(code: str, *arguments: object, **environment: str) -> str:
    """What a process with these environment variables prints."""
    path = os.pathsep.join([str(SRC), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": path, **environment},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Images for the digits network."""
    graph = intonnx.import_model(MODEL)
    x = random_inputs(graph, np.random.default_rng(0), batch=9)["x"]
    path = tmp_path_factory.mktemp("inputs") / "x.npy"
    np.save(path, x)
    return path


def test_files_have_the_same_bytes_in_every_process(tmp_path: Path) -> None:
    digests = []
    for seed in ("1", "2"):
        out = tmp_path / seed
        out.mkdir()
        child(_WRITE, MODEL, out, PYTHONHASHSEED=seed)
        files = sorted(out.iterdir())
        assert len(files) == 5
        digests.append({f.name: hashlib.sha256(f.read_bytes()).hexdigest() for f in files})
    assert digests[0] == digests[1]


def test_traces_are_the_same_on_the_blas_kernels_of_other_cpus(image: Path) -> None:
    """OPENBLAS_CORETYPE chooses the kernels; a CPU that lacks the instructions keeps its own."""
    kinds = [{"OPENBLAS_CORETYPE": kind} for kind in ("Haswell", "SkylakeX", "Zen")]
    kinds += [{"OPENBLAS_NUM_THREADS": count} for count in ("1", "2")]
    found = {child(_TRACE, MODEL, image, **kind) for kind in kinds}
    assert len(found) == 1


def test_an_image_does_not_depend_on_its_batch(image: Path) -> None:
    x: Array = np.load(image)
    exe = intonnx.compile(intonnx.import_model(MODEL))
    whole = exe.run({"x": x})["y"]
    for size in (1, 2, 4, 5):
        parts = [exe.run({"x": x[i : i + size]})["y"] for i in range(0, len(x), size)]
        np.testing.assert_array_equal(np.concatenate(parts), whole)


def test_many_runs_in_many_threads_are_equal_and_hold_no_memory(image: Path) -> None:
    x: Array = np.load(image)
    exe = intonnx.compile(intonnx.import_model(MODEL))
    wanted = exe.run({"x": x})["y"]

    def check(index: int) -> bool:
        size = 1 + index % len(x)
        return bool(np.array_equal(exe.run({"x": x[:size]})["y"], wanted[:size]))

    def kept(pool: ThreadPoolExecutor) -> int:
        """The bytes that are there after hundreds of runs."""
        assert all(pool.map(check, range(400)))
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(check, range(200)))
        tracemalloc.start()
        try:
            first, second = kept(pool), kept(pool)
        finally:
            tracemalloc.stop()
    # A value of one run that stayed would be 10,000 bytes at least, of all 400 runs 4 MB.
    assert second - first < 10_000
