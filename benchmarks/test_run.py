"""Time of a run beside onnxruntime without optimization, in the same session, one thread each.

    OPENBLAS_NUM_THREADS=1 .venv/bin/pytest benchmarks --benchmark-group-by=param:model

prints both as one group per model, with the ratio to the faster in brackets. `INTONNX_CORPUS` adds
the networks of the optional corpus to the bundled one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest

import intonnx

Array = np.ndarray[Any, Any]
DEMO = Path(intonnx.__file__).parent / "demo_data"
CORPUS = ["tf2onnx/pretrainedResnet_quant_op13", "tf2onnx/vww_96_int8_op13",
          "tf2onnx/kws_ref_model_op13", "ort/ocrcls_op13_qdq_u8s8_pc"]  # fmt: skip


def bundled() -> tuple[Path, dict[str, Array]]:
    with np.load(DEMO / "digits_test.npz") as archive:
        return DEMO / "digits_qdq.onnx", {"x": archive["images"][:64]}


def recorded(name: str) -> tuple[Path, dict[str, Array]]:
    path = Path(os.environ["INTONNX_CORPUS"]) / f"{name}.onnx"
    with np.load(path.with_name(path.stem + ".io.npz")) as archive:
        inputs = {key[4:]: archive[key] for key in archive if key.startswith("in__")}
    stacked = name.startswith("tf2onnx")
    return path, {key: value[0] if stacked else value for key, value in inputs.items()}


MODELS: dict[str, Callable[[], tuple[Path, dict[str, Array]]]] = {"digits, 64 images": bundled}
if "INTONNX_CORPUS" in os.environ:
    MODELS |= {name: lambda name=name: recorded(name) for name in CORPUS}  # type: ignore[misc]


def ours(path: Path) -> Callable[[Mapping[str, Array]], object]:
    return intonnx.compile(intonnx.import_model(path)).run


def theirs(path: Path) -> Callable[[Mapping[str, Array]], object]:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options, ["CPUExecutionProvider"])
    return lambda inputs: session.run(None, dict(inputs))


@pytest.mark.parametrize("make", [ours, theirs], ids=["intonnx", "onnxruntime"])
@pytest.mark.parametrize("model", MODELS)
def test_run(benchmark: Any, model: str, make: Callable[..., Any]) -> None:
    path, inputs = MODELS[model]()
    run = make(path)
    run(inputs)
    benchmark(run, inputs)
