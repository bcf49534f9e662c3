"""Every kind of boundary, and the corpus, through both forms.

No result changes, and every scale, zero point and weight code is there again.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import intonnx
from boundaries.patterns import Case
from boundaries.test_boundaries import TABLE
from support.corpus import corpus_models
from support.kept import lost

FORMS = [("qlinear", "qdq"), ("qdq", "qlinear")]
SAMPLE = [case for i, case in enumerate(TABLE) if i % 24 == 0 or "blocked" in case.id]
MODELS = corpus_models("brevitas/*.onnx", "micro_kws/*.onnx", "ort_testdata/transpose*.onnx",
                       "ort_testdata/qdq_with_multi_consumer_q_dq_axis.onnx",
                       "ort/cnn_qdq_s8s8_pt.onnx", "ort/tr_qdq_s8s8_pc.onnx",
                        "ort/cnn_qop_*.onnx")  # fmt: skip

EVERY = corpus_models("**/*.onnx")
LOST = {
    "convtranspose": "its weights are laid out as those of a convolution for each phase",
    "matmul-blocked": "its weights are laid out block by block",
    "equal": "codes that a caller gives are compared: nothing is left that has a scale",
    "greater": "the same",
    "less-or-equal": "the same",
    "argmax": "the same",
    "argmin": "the same",
    "min-constant": "the same, with constant codes",
    "scatter-nd-same": "codes that a caller gives are replaced by constant ones",
}
"""Where the QLinear form has no place for parameters, and an import does not find them again."""
LOST_WEIGHTS = {
    "ort_testdata/test_conv_follow_convtrans_s8.onnx": ["conv_transpose.weight_quantized"]
}


def check(graph: intonnx.Graph, inputs: Any, forms: tuple[Any, ...]) -> None:
    wanted = intonnx.compile(graph).run(inputs)
    for form in (*forms, forms[0]):
        graph = intonnx.import_model(intonnx.to_onnx(graph, form=form))
        found = intonnx.compile(graph).run(inputs)
        for name, array in wanted.items():
            np.testing.assert_array_equal(found[name], array, err_msg=f"{form}: {name}")


@pytest.mark.parametrize("forms", FORMS, ids="-".join)
@pytest.mark.parametrize("case", SAMPLE, ids=lambda case: case.id)
def test_boundaries_keep_their_results(case: Case, forms: tuple[Any, ...]) -> None:
    model, draw = case.pattern.draw(case.storage, case.from_codes, 0)
    check(intonnx.import_model(model), draw.inputs, forms)


@pytest.mark.parametrize("forms", FORMS, ids="-".join)
@pytest.mark.parametrize("path", MODELS)
def test_real_models_keep_their_results(path: Path, forms: tuple[Any, ...]) -> None:
    with np.load(path.with_name(path.stem + ".io.npz")) as archive:
        inputs = {name[4:]: archive[name] for name in archive if name.startswith("in__")}
    check(intonnx.import_model(path), inputs, forms)


@pytest.mark.parametrize("forms", FORMS, ids="-".join)
@pytest.mark.parametrize("case", TABLE[::4], ids=lambda case: case.id)
def test_boundaries_keep_their_parameters(case: Case, forms: tuple[Any, ...]) -> None:
    model, _ = case.pattern.draw(case.storage, case.from_codes, 0)
    before = intonnx.import_model(model)
    if not any(case.id.startswith(kind) for kind in LOST):
        assert lost(before, through(before, *forms)) == []


@pytest.mark.parametrize("path", EVERY)
def test_real_models_keep_their_parameters(path: Path) -> None:
    try:
        before = intonnx.import_model(path)
    except intonnx.ImportFailure:
        pytest.skip("one of the models that are refused")
    expected = next((w for name, w in LOST_WEIGHTS.items() if str(path).endswith(name)), [])
    assert lost(before, through(before, "qlinear", "qdq", "qlinear")) == expected


def through(graph: intonnx.Graph, *forms: Any) -> intonnx.Graph:
    for form in forms:
        graph = intonnx.import_model(intonnx.to_onnx(graph, form=form))
    return graph
