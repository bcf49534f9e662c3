"""Every model of the corpus: imported or refused for its cause, run, exported, and run again.

    INTONNX_CORPUS=... pytest tests/corpus/test_whole_corpus.py

ends with a table: model, producer, share of integer operators, agreement.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest

import intonnx
from boundaries.census import computes_in_floats
from support.corpus import corpus_models, find_corpus
from support.runtime import run_onnxruntime

Array = np.ndarray[Any, Any]
Results = Mapping[str, Array]

REFUSED = {
    "ort/ocrcls_qdq_u8s8_pc.onnx": "per-axis parameters came with opset 13",
    "onnx_neural_compressor/tr_rtn4_g16.onnx": "_zp' has 16 elements",
    "ort_testdata/conv_qdq_external_ini.onnx": "is missing",
}
"""The models that are not valid, and what the message says."""
UNKNOWN_OPERATOR = "ort_testdata/custom_op_local_function/custom_ops_type_inference_fails_0.onnx"
LARGEST = 2**25
"""How many elements a drawn input may have; one model takes 800 million."""
RECORDED = 0.01
"""The mean difference from the recorded results, as a share of their range.

They were recorded with onnxruntime's optimizer on, whose kernels round otherwise than the literal
model by a quantum here and there, and each layer carries that on.
"""
FLOATS = 1e-4
"""The same between two runs that compute in floats, where sums are added in another order.

Codes of 16 bits, for which onnxruntime has no integer kernels, move by one now and then, which the
next layers carry on.
"""

MODELS = corpus_models("**/*.onnx")
Record = Callable[[str, object], None]


def name_of(path: Path) -> str:
    corpus = find_corpus()
    assert isinstance(corpus, Path)
    return path.relative_to(corpus).as_posix()


def test_the_corpus_is_whole(corpus: Path) -> None:
    names = {name_of(path) for path in corpus.glob("**/*.onnx")}
    assert len(names) >= 139
    assert names > {*REFUSED, UNKNOWN_OPERATOR}


@pytest.mark.parametrize("path", MODELS)
def test_model(path: Path, record_property: Record) -> None:
    name = name_of(path)
    record_property("model", name)
    model = onnx.load(path, load_external_data=False)
    record_property("producer", f"{model.producer_name} {model.producer_version}".strip())
    if name in REFUSED:
        record_property("agreement", f"refused: {REFUSED[name]}")
        with pytest.raises(intonnx.ImportFailure, match=REFUSED[name]) as failure:
            intonnx.import_model(path)
        assert path.name in str(failure.value)
        assert "\n" not in str(failure.value)
        return
    graph = intonnx.import_model(path)
    coverage = intonnx.coverage(graph)
    operators = coverage.integer + coverage.float
    record_property("integer", f"{coverage.integer} of {operators}")
    exports = {form: intonnx.to_onnx(graph, form=form) for form in ("qlinear", "qdq")}
    for exported in exports.values():
        onnx.checker.check_model(exported, full_check=name != UNKNOWN_OPERATOR)
    if name == UNKNOWN_OPERATOR:
        record_property("agreement", "an operator of an unknown domain")
        with pytest.raises(intonnx.CompileFailure, match="CustomGemmFloat8E4M3FN"):
            intonnx.compile(graph)
        return
    given = inputs_of(path, model)
    if given is None:
        record_property("agreement", "its inputs are too large to be drawn")
        return
    check(path, graph, exports, given, record_property)


def check(
    path: Path, graph: intonnx.Graph, exports: Mapping[str, onnx.ModelProto],
    given: tuple[Results, Results | None], record_property: Record,
) -> None:  # fmt: skip
    """The integer run against the recorded results, and against the exports in onnxruntime."""
    inputs, recorded = given
    executable = intonnx.compile(graph)
    ours = executable.run(inputs)
    found: list[str] = []
    if recorded is not None:
        error = apart(ours, recorded)
        found.append("recorded: " + ("equal" if error == 0 else f"{error:.0e} of the range"))
        assert error <= RECORDED
    if any(array.dtype == ml_dtypes.bfloat16 for array in inputs.values()):
        found.append("onnxruntime takes no bfloat16 from numpy")
    else:
        found.append(check_exports(graph, exports, inputs, ours))
    images = digits_for(graph)
    if images is not None:
        found.append(check_accuracy(path, executable, *images))
    record_property("agreement", ", ".join(found))


def check_exports(
    graph: intonnx.Graph, exports: Mapping[str, onnx.ModelProto], inputs: Results, ours: Results
) -> str:
    """Integer operators give our results bit for bit, on any CPU, with and without optimizer."""
    exported = exports["qlinear"]
    exact = intonnx.coverage(graph).float == 0 and not computes_in_floats(exported)
    errors = [
        apart(run_onnxruntime(exported, inputs, optimized=optimized, exact=False), ours)
        for optimized in (False, True)
    ]
    # Without optimizer the same float operators run; with it, others for weights in blocks.
    assert errors[0] <= (0 if exact else FLOATS)
    assert errors[1] <= (0 if exact else RECORDED)
    literal = run_onnxruntime(exports["qdq"], inputs, optimized=False)
    assert apart(literal, intonnx.compile(graph, numerics="qdq").run(inputs)) <= RECORDED
    worst = max(errors)
    return "export: " + ("equal" if worst == 0 else f"{worst:.0e} of the range")


def check_accuracy(path: Path, executable: intonnx.Executable, images: Array, labels: Array) -> str:
    """At most one image fewer is classified right than by onnxruntime."""
    theirs = run_onnxruntime(onnx.load(path), {"x": images}, optimized=False)["y"].argmax(1)
    ours = executable.run({"x": images})["y"].argmax(1)
    right, wanted = (np.count_nonzero(found == labels) for found in (ours, theirs))
    assert abs(right - wanted) <= 1
    return f"digits: {right} of {len(labels)}, onnxruntime {wanted}"


def digits_for(graph: intonnx.Graph) -> tuple[Array, Array] | None:
    """The images and labels of the digits, for a network that classifies them."""
    if graph.inputs != ("x",) or graph.outputs != ("y",):
        return None
    if (graph.types["x"].shape or ())[1:] != (1, 8, 8):
        return None
    corpus = find_corpus()
    assert isinstance(corpus, Path)
    with np.load(corpus / "digits.npz") as archive:
        return archive["Xte"], archive["Yte"]


def apart(found: Results, wanted: Results) -> float:
    """The mean difference as a share of the range, for the output where it is largest.

    What is not finite must be the same, but for float16.
    """
    worst = 0.0
    assert found.keys() >= wanted.keys()
    for name, array in wanted.items():
        assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape), name
        if array.dtype.kind not in "iufb" or np.array_equal(found[name], array, equal_nan=True):
            np.testing.assert_array_equal(found[name], array)
            continue
        one, other = (a.astype(np.float64) for a in (found[name], array))
        finite = np.isfinite(other)
        if array.dtype == np.float16:
            # onnxruntime computes in float32, and in between keeps what float16 cannot hold.
            finite &= np.isfinite(one)
        else:
            np.testing.assert_array_equal(one[~finite], other[~finite])
        distance = np.abs(one[finite] - other[finite]).mean()
        worst = max(worst, float(distance / max(np.ptp(other[finite]), 1e-9)))
    return worst


def inputs_of(path: Path, model: onnx.ModelProto) -> tuple[Results, Results | None] | None:
    """The recorded inputs and results, else drawn inputs; None where those would be too large."""
    recording = path.with_name(path.stem + ".io.npz")
    if not recording.exists():
        drawn = drawn_inputs(model)
        return None if drawn is None else (drawn, None)
    with np.load(recording) as archive:
        arrays = {name: archive[name] for name in archive}
    ranks = {v.name: len(v.type.tensor_type.shape.dim) for v in model.graph.input}
    inputs = {name[4:]: array for name, array in arrays.items() if name.startswith("in__")}
    results = {name[5:]: array for name, array in arrays.items() if name.startswith("out__")}
    if any(array.ndim == ranks[name] + 1 for name, array in inputs.items()):
        inputs, results = ({k: a[0] for k, a in part.items()} for part in (inputs, results))
    return inputs, results


def drawn_inputs(model: onnx.ModelProto) -> Results | None:
    """Small numbers for every input without a default; a size that is free is 4."""
    rng = np.random.default_rng(0)
    known = {tensor.name for tensor in model.graph.initializer}
    inputs: dict[str, Array] = {}
    for value in model.graph.input:
        if value.name in known:
            continue
        tensor = value.type.tensor_type
        shape = [dim.dim_value or 4 for dim in tensor.shape.dim]
        dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type))
        if np.prod(shape, dtype=float) > LARGEST:
            return None
        if dtype.kind in "iu":
            inputs[value.name] = rng.integers(0, 8, shape).astype(dtype)
        else:
            inputs[value.name] = rng.standard_normal(shape, np.float32).astype(dtype)
    return inputs
