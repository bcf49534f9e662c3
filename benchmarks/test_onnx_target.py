"""onnxruntime on a quantized model against onnxruntime on our export of it, one thread each.

    .venv/bin/pytest benchmarks/test_onnx_target.py -s
    INTONNX_CORPUS=... INTONNX_NETWORKS=folder-for-the-quantized-networks ...

Both sessions are alive in one process and run in turn, so that what else the machine does meets
both. A line has the ratio of the shortest runs, and the spread: the quartiles of the ratios of
neighbouring runs. On a CPU with VNNI the export is the one for x86-vnni. Beside it: file size,
session creation time, and what creating and running a session adds to the peak memory, each in a
process of its own.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest

import intonnx
from intonnx.verification.runtime import saturates

sys.path.insert(0, str(Path(__file__).parent))

from networks import NETWORKS
from quantizing import WAYS, quantized

Array = np.ndarray[Any, Any]
ROUNDS = int(os.environ.get("INTONNX_ROUNDS", "15"))
OCR = ("ort/ocrcls_op13_qdq_u8s8_pc", "ort/ocrcls_qop_u8s8", "ort/ocrcls_op13_qop_s8s8_pc",
       "ort/ocrdet_qdq_u8s8_pc")  # fmt: skip
MODELS = [f"{network}-{way}" for network in NETWORKS for way in WAYS]
if "INTONNX_CORPUS" in os.environ:
    MODELS += OCR

_PEAK = """
import re, sys, numpy, onnxruntime
def peak():  # what getrusage says begins with the parent's
    return int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
before = peak()
options = onnxruntime.SessionOptions()
options.intra_op_num_threads, options.log_severity_level = 1, 4
session = onnxruntime.InferenceSession(sys.argv[1], options, ["CPUExecutionProvider"])
session.run(None, dict(numpy.load(sys.argv[2])))
print(peak() - before)
"""


@dataclass(frozen=True)
class Line:
    """One model: milliseconds, ratio, spread, and what the two files cost beside time."""

    original: float
    export: float
    quartiles: tuple[float, float]
    sizes: tuple[float, float]
    creation: tuple[float, float]
    memory: tuple[float, float]

    @property
    def ratio(self) -> float:
        """How many times as fast the export is."""
        return self.original / self.export


@pytest.fixture(scope="module")
def lines() -> Iterator[dict[str, Line]]:
    """What was measured; printed at the end as a table with the geometric mean."""
    found: dict[str, Line] = {}
    yield found
    print(f"\n{'model':34}{'original':>10}{'export':>9}{'ratio':>7}   quartiles     "
          "MB            session ms      peak MB")  # fmt: skip
    for name, line in found.items():
        pairs = "".join(f"{a:8.1f} {b:6.1f}" for a, b in (line.sizes, line.creation, line.memory))
        low, high = line.quartiles
        print(f"{name:34}{line.original:8.2f}ms{line.export:7.2f}ms{line.ratio:7.2f}"
              f"   {low:.2f}-{high:.2f} {pairs}")  # fmt: skip
    if found:
        mean = math.exp(sum(math.log(line.ratio) for line in found.values()) / len(found))
        print(f"geometric mean of {len(found)}: {mean:.2f}")


def session(path: Path) -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    return onnxruntime.InferenceSession(str(path), options, ["CPUExecutionProvider"])


def seconds(work: Any) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def peak(path: Path, inputs: Path) -> float:
    done = subprocess.run(
        [sys.executable, "-c", _PEAK, path, inputs], check=True, capture_output=True
    )
    return int(done.stdout) / 1024


def files(name: str, folder: Path) -> tuple[Path, dict[str, Array]]:
    """The quantized model and inputs for it."""
    if "/" in name:
        path = Path(os.environ["INTONNX_CORPUS"], f"{name}.onnx")
        with np.load(path.with_name(path.stem + ".io.npz")) as archive:
            return path, {key[4:]: archive[key] for key in archive if key.startswith("in__")}
    network, _, way = name.partition("-")
    path = quantized(network, way, folder)
    shape = session(path).get_inputs()[0].shape
    return path, {"x": np.random.default_rng(5).standard_normal(shape).astype(np.float32)}


@pytest.mark.parametrize("name", MODELS)
def test_export(
    name: str, lines: dict[str, Line], tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = Path(os.environ.get("INTONNX_NETWORKS") or tmp_path_factory.getbasetemp())
    original, inputs = files(name, folder)
    export, archive = tmp_path / "export.onnx", tmp_path / "inputs.npz"
    graph = intonnx.import_model(original)
    cpu = "x86" if saturates() else "x86-vnni"
    export.write_bytes(intonnx.to_onnx(graph, cpu=cpu).SerializeToString())
    np.savez(archive, **inputs)
    paths, sessions = (original, export), [session(original), session(export)]
    for made in sessions:
        made.run(None, inputs)
    times = np.asarray([[seconds(lambda s=s: s.run(None, inputs)) for s in sessions]
                        for _ in range(ROUNDS)])  # fmt: skip
    low, high = np.percentile(times[:, 0] / times[:, 1], (25, 75))
    creation = [min(seconds(lambda p=p: session(p)) for _ in range(3)) * 1e3 for p in paths]
    sizes, memory = [p.stat().st_size / 2**20 for p in paths], [peak(p, archive) for p in paths]
    best = times.min(axis=0) * 1e3
    lines[name] = Line(float(best[0]), float(best[1]), (float(low), float(high)),
                       (sizes[0], sizes[1]), (creation[0], creation[1]),
                       (memory[0], memory[1]))  # fmt: skip
    assert lines[name].ratio > 0.5
