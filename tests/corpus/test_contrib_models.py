"""Models with operators of com.microsoft that real tools wrote: blocks, dynamic products.

Their results are floats: they agree to some units of float32 with the recorded ones.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import intonnx
from support.corpus import corpus_models
from support.runtime import run_onnxruntime

MODELS = corpus_models(
    "ort/tr_nbits4_blk16_asym.onnx",
    "ort/tr_nbits8_blk32.onnx",
    "onnx_neural_compressor/tr_dynamic.onnx",
    "ort_testdata/transform/runtime_optimization/matmulnbits_add.onnx",
)
INVALID = corpus_models("onnx_neural_compressor/tr_rtn4_g16.onnx")


@pytest.mark.parametrize("path", MODELS)
def test_recorded_results(path: Path) -> None:
    with np.load(path.with_name(path.stem + ".io.npz")) as archive:
        inputs = {key[4:]: archive[key] for key in archive if key.startswith("in__")}
        wanted = {key[5:]: archive[key] for key in archive if key.startswith("out__")}
    graph = intonnx.import_model(path)
    exported = run_onnxruntime(intonnx.to_onnx(graph), inputs, optimized=True)
    for found in (intonnx.compile(graph).run(inputs), exported):
        for name, array in wanted.items():
            # Weights alone are quantized: float products, whose order of sums nothing defines.
            np.testing.assert_allclose(found[name], array, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("path", INVALID)
def test_zero_points_of_the_wrong_size_are_refused(path: Path) -> None:
    with pytest.raises(intonnx.ImportFailure, match="has 16 elements, not"):
        intonnx.import_model(path)
