"""The product on files that real tools wrote, against onnxruntime."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import intonnx
from intonnx.ir.types import TensorType
from support.corpus import corpus_models, find_corpus
from support.runtime import expose, run_onnxruntime

Array = np.ndarray[Any, Any]

INTEGER_MODELS = corpus_models(
    "tf2onnx/ad01*.onnx",
    "tf2onnx/kws*.onnx",
    "tf2onnx/pretrainedResnet*.onnx",
    "tf2onnx/str_ww*.onnx",
    "tf2onnx/vww*.onnx",
)
DIGIT_MODELS = corpus_models(
    "ort/cnn_qdq_u8s8_pc.onnx",
    "ort/cnn_qdq_u8u8_asym.onnx",
    "ort/cnn_qdq_s8s8_pt.onnx",
    "ort/cnn_qdq_s8s8_sym_pc.onnx",
    "ort/cnn_qop_*.onnx",
)
KEYWORD_MODELS = corpus_models("micro_kws/*.onnx")
OCR_MODELS = corpus_models(
    "ort/ocrcls_op13_qdq_u8s8_pc.onnx",
    "ort/ocrcls_qop_u8s8.onnx",
    "ort/ocrcls_op13_qop_s8s8_pc.onnx",
    "ort/ocrdet_qdq_u8s8_pc.onnx",
)
OTHER_MODELS = corpus_models("ort/cnn_dyn_u8.onnx", "tf2onnx/model_ToyCar*.onnx")
ALL_MODELS = INTEGER_MODELS + DIGIT_MODELS + KEYWORD_MODELS + OCR_MODELS + OTHER_MODELS


def recorded_inputs(path: Path) -> Iterator[dict[str, Array]]:
    """The recorded inputs of a model, sample by sample where samples are stacked."""
    with np.load(path.with_name(path.stem + ".io.npz")) as archive:
        stacked = {key[4:]: archive[key] for key in archive if key.startswith("in__")}
    model = onnx.load(path, load_external_data=False)
    ranks = {value.name: len(value.type.tensor_type.shape.dim) for value in model.graph.input}
    name, array = next(iter(stacked.items()))
    if array.ndim == ranks[name]:
        yield stacked
        return
    for index in range(len(array)):
        yield {key: value[index] for key, value in stacked.items()}


def assert_equal(ours: Mapping[str, Array], theirs: Mapping[str, Array]) -> None:
    assert ours.keys() == theirs.keys()
    for name, array in theirs.items():
        assert ours[name].dtype == array.dtype
        np.testing.assert_array_equal(ours[name], array, err_msg=name)


@pytest.mark.parametrize("path", INTEGER_MODELS + DIGIT_MODELS)
def test_every_operator_is_integer(path: Path) -> None:
    floats = [node for node in intonnx.coverage(intonnx.import_model(path)).nodes
              if node.state == "float"]  # fmt: skip
    assert floats == []


@pytest.mark.parametrize("optimized", [False, True], ids=["plain", "optimized"])
@pytest.mark.parametrize("path", INTEGER_MODELS + DIGIT_MODELS + KEYWORD_MODELS)
def test_equals_onnxruntime_on_the_export_bit_for_bit(path: Path, optimized: bool) -> None:
    graph = intonnx.import_model(path)
    executable = intonnx.compile(graph)
    exported = intonnx.to_onnx(graph)
    all_integer = intonnx.coverage(graph).float == 0
    for inputs in recorded_inputs(path):
        # The exported model itself, unchanged, is right on every CPU.
        theirs = run_onnxruntime(exported, inputs, optimized=optimized, exact=False)
        if all_integer:
            assert_equal(executable.run(inputs), theirs)
            continue
        for name, array in executable.run(inputs).items():
            # One keyword model ends in a float Softmax, which two implementations compute.
            np.testing.assert_allclose(array, theirs[name], rtol=1e-6, err_msg=name)


@pytest.mark.parametrize("path", INTEGER_MODELS + DIGIT_MODELS + KEYWORD_MODELS)
def test_every_code_equals_that_of_onnxruntime_on_the_export(path: Path) -> None:
    graph = intonnx.import_model(path)
    inputs = next(recorded_inputs(path))
    trace = intonnx.compile(graph).trace(inputs)
    theirs = run_onnxruntime(expose(intonnx.to_onnx(graph)), inputs, optimized=False, exact=False)
    shared = [name for name in trace.keys() & theirs.keys() if graph.types[name].is_integer]
    assert len(shared) >= 8
    for name in shared:
        # For x86 what is s8 in the model is u8 in the export, 128 higher.
        moved = 128 if (trace[name].dtype, theirs[name].dtype) == (np.int8, np.uint8) else 0
        np.testing.assert_array_equal(
            trace[name].astype(np.int64) + moved, theirs[name], err_msg=name
        )


def quanta_apart(ours: Array, theirs: Array, kind: TensorType) -> int:
    if not kind.is_integer:
        return 0
    difference = np.abs(ours.astype(np.int64) - theirs.astype(np.int64))
    return int(difference.max(initial=0))


@pytest.mark.parametrize("path", INTEGER_MODELS + DIGIT_MODELS + KEYWORD_MODELS[:1])
def test_each_operator_is_within_one_quantum_of_the_literal_model(path: Path) -> None:
    """Every boundary gets onnxruntime's own codes, so one operator's error shows at a time."""
    graph = intonnx.import_model(path)
    executable = intonnx.compile(graph)
    exposed = expose(onnx.load(path))
    inputs = next(recorded_inputs(path))
    literal = run_onnxruntime(exposed, inputs, optimized=False)
    trace = executable.trace(inputs, given=literal)
    codes = {n: graph.types[n] for n in trace.keys() & literal.keys() if graph.types[n].quant}
    assert len(codes) >= 10
    far = {name: quanta_apart(trace[name], literal[name], kind) for name, kind in codes.items()}
    assert {name: quanta for name, quanta in far.items() if quanta > 1} == {}


@pytest.mark.parametrize("path", ALL_MODELS)
def test_each_operator_under_fixed_is_within_one_quantum_in_integers(path: Path) -> None:
    graph = intonnx.import_model(path)
    inputs = next(recorded_inputs(path))
    trace = intonnx.compile(graph).trace(inputs)
    fixed = intonnx.compile(graph, numerics="fixed").trace(inputs, given=trace)
    assert {
        name: far
        for name, kind in graph.types.items()
        if name in fixed and (far := quanta_apart(fixed[name], trace[name], kind)) > 1
    } == {}
    if intonnx.coverage(graph).float == 0:
        ends = {*graph.inputs, *graph.outputs, *graph.constants}
        floats = {name for name, array in fixed.items() if array.dtype.kind == "f"}
        assert floats <= ends


@pytest.mark.parametrize("path", DIGIT_MODELS)
def test_digit_networks_classify_under_fixed_as_under_qlinear(path: Path) -> None:
    images, labels = digits()
    graph = intonnx.import_model(path)
    fixed, qlinear = (
        intonnx.compile(graph, numerics=numerics).run({"x": images})["y"].argmax(1)
        for numerics in ("fixed", "qlinear")
    )
    assert np.count_nonzero(fixed != qlinear) <= 2
    assert np.count_nonzero(fixed == labels) >= np.count_nonzero(qlinear == labels) - 1


def digits() -> tuple[Array, Array]:
    corpus = find_corpus()
    assert isinstance(corpus, Path)
    with np.load(corpus / "digits.npz") as archive:
        return archive["Xte"], archive["Yte"]


@pytest.mark.parametrize("path", DIGIT_MODELS)
def test_digit_networks_classify_every_image_as_onnxruntime_does(path: Path) -> None:
    images, labels = digits()
    ours = intonnx.compile(intonnx.import_model(path)).run({"x": images})["y"].argmax(1)
    theirs = run_onnxruntime(onnx.load(path), {"x": images}, optimized=False)["y"].argmax(1)
    assert len(images) == 397
    assert np.count_nonzero(ours == labels) >= np.count_nonzero(theirs == labels)
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("path", OCR_MODELS + OTHER_MODELS)
def test_real_results_are_those_of_onnxruntime(path: Path) -> None:
    """Float operators are run by another implementation, and depth adds quanta: so a tolerance."""
    inputs = next(recorded_inputs(path))
    ours = intonnx.compile(intonnx.import_model(path)).run(inputs)
    theirs = run_onnxruntime(onnx.load(path), inputs, optimized=False)
    for name, array in theirs.items():
        scale = max(1.0, float(np.abs(array).max()))
        error = np.abs(ours[name].astype(np.float64) - array) / scale
        assert error.mean() < 0.02, name


@pytest.mark.parametrize("path", ALL_MODELS)
def test_round_trips_keep_the_graph_and_the_result(path: Path, tmp_path: Path) -> None:
    graph = intonnx.import_model(path)
    inputs = next(recorded_inputs(path))
    result = intonnx.compile(graph).run(inputs)

    parsed = intonnx.parse(str(graph), weights=graph.constants)
    assert parsed == graph
    assert_equal(intonnx.compile(parsed).run(inputs), result)

    graph.save(str(tmp_path / "graph.intonnx"))
    loaded = intonnx.load(str(tmp_path / "graph.intonnx"))
    assert loaded == graph
    assert_equal(intonnx.compile(loaded).run(inputs), result)

    again = intonnx.import_model(intonnx.to_onnx(graph))
    assert_equal(intonnx.compile(again).run(inputs), result)
