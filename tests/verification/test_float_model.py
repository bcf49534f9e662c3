"""Layers beside the float model: paired, ranked, and with remedies that were tried."""

from __future__ import annotations

import logging

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import intonnx
from intonnx.verification import FloatComparison, compare_with_float
from support.float_networks import float_network, images, quantized_network
from support.runtime import run_onnxruntime

SAMPLES = [{"x": image} for image in images(3, seed=5)]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, onnx.ModelProto]:
    """The network in both forms, and with a scale behind the first relu 4 times too small."""
    logging.getLogger().setLevel(logging.ERROR)
    found = {}
    for form in ("qdq", "qop"):
        folder = tmp_path_factory.mktemp(form)
        found[form] = onnx.load(quantized_network(folder, qoperator=form == "qop"))
    clipped = onnx.ModelProto()
    clipped.CopyFrom(found["qdq"])
    scale = next(n.input[1] for n in clipped.graph.node if n.input[0] == "r1")
    (tensor,) = [t for t in clipped.graph.initializer if t.name == scale]
    smaller = numpy_helper.to_array(tensor) * np.float32(0.25)
    tensor.CopyFrom(numpy_helper.from_array(np.asarray(smaller), scale))
    return {**found, "clipped": clipped}


def compared(
    model: onnx.ModelProto, float_model: onnx.ModelProto, *, names: bool = True
) -> FloatComparison:
    graph = intonnx.import_model(model)
    original = model if names else None
    return compare_with_float(
        graph, original, intonnx.import_model(float_model), float_model, SAMPLES
    )


def test_values_are_paired_by_name_and_measured(models: dict[str, onnx.ModelProto]) -> None:
    found = compared(models["qdq"], float_network())
    pairs = {layer.float_value: layer for layer in found.layers}
    assert {"x", "r1", "r2", "y"} <= pairs.keys()
    # The whole run, by the plain formula, against onnxruntime on the float model.
    ours = np.concatenate([
        intonnx.compile(intonnx.import_model(models["qdq"])).run(s)["y"] for s in SAMPLES
    ]).astype(float)  # fmt: skip
    theirs = np.concatenate(
        [run_onnxruntime(float_network(), s, optimized=False)["y"] for s in SAMPLES]
    )
    wanted = 10 * np.log10(np.square(theirs).sum() / np.square(ours - theirs).sum())
    assert found.layers[-1].sqnr == pytest.approx(wanted, rel=1e-4)


def test_a_relu_that_a_convolution_took_in_is_what_it_is_compared_with(
    models: dict[str, onnx.ModelProto],
) -> None:
    pairs = {layer.value: layer for layer in compared(models["qop"], float_network()).layers}
    assert pairs["c1_quantized"].float_value == "r1"
    assert (pairs["c1_quantized"].own_sqnr or 0) > 30


def test_other_names_are_paired_by_structure(models: dict[str, onnx.ModelProto]) -> None:
    renamed = float_network()
    for node in renamed.graph.node:
        for names in (node.input, node.output):
            for index, name in enumerate(names):
                if name not in ("x", "y"):
                    names[index] = f"other/{name}"
    for tensor in renamed.graph.initializer:
        tensor.name = f"other/{tensor.name}"
    pairs = {layer.float_value for layer in compared(models["qdq"], renamed).layers}
    assert {"other/r1", "other/r2", "y"} <= pairs


def test_a_scale_that_is_too_small_is_found_and_a_wider_one_helps(
    models: dict[str, onnx.ModelProto],
) -> None:
    found = compared(models["clipped"], float_network())
    layers = {layer.float_value: layer for layer in found.layers}
    bad = layers["r1"]
    assert bad in found.worst(2)
    assert (bad.quantizer_sqnr or 99) < 15
    assert bad.saturation > 0.1
    assert (layers["r2"].quantizer_sqnr or 0) > 30
    best = bad.remedies[0]
    assert best.change.startswith("a wider output scale")
    assert best.after > 35 > 15 > best.before


def test_weights_of_uneven_channels_want_a_scale_for_each(
    models: dict[str, onnx.ModelProto],
) -> None:
    layers = {layer.float_value: layer for layer in compared(models["qdq"], float_network()).layers}
    changes = {remedy.change: remedy for remedy in layers["r2"].remedies}
    remedy = changes["weights with a scale for each channel"]
    assert remedy.after > remedy.before + 3
