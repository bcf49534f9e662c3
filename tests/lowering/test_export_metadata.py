"""What a model says beside its operators comes out again; the opset can be chosen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import intonnx
from boundaries.patterns import Case
from boundaries.test_boundaries import TABLE
from support.models import Array, Builder, Params, u8
from support.runtime import run_onnxruntime

FORMS = ["qlinear", "qdq"]
SHAPE = ("batch", 4, None, 6)
SAMPLE = TABLE[::14]


def described_model(opset: int = 17) -> onnx.ModelProto:
    """A network that says all that a model can say; `gain` is an input with a default."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, SHAPE, "an image")
    x.type.denotation = "IMAGE"
    x.type.tensor_type.shape.dim[0].denotation = "DATA_BATCH"
    q = ["scale", "zero"]
    graph = helper.make_graph(
        [
            helper.make_node("QuantizeLinear", ["x", *q], ["xq"], "quantize_x"),
            helper.make_node("DequantizeLinear", ["xq", *q], ["xd"], "dequantize_x"),
            helper.make_node("Relu", ["xd"], ["h"], "relu"),
            helper.make_node("QuantizeLinear", ["h", *q], ["hq"], "quantize_h"),
            helper.make_node("DequantizeLinear", ["hq", *q], ["hd"], "dequantize_h"),
            helper.make_node("Mul", ["hd", "gain"], ["y"], "gain_of_y"),
        ],
        "net",
        [
            x,
            helper.make_tensor_value_info("unused", TensorProto.INT64, ["K"]),
            helper.make_tensor_value_info("gain", TensorProto.FLOAT, [1], "may be given"),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, SHAPE, "the result")],
        [
            numpy_helper.from_array(np.asarray(0.1, np.float32), "scale"),
            numpy_helper.from_array(np.asarray(128, np.uint8), "zero"),
            numpy_helper.from_array(np.ones(1, np.float32), "gain"),
        ],
        doc_string="of the graph",
        value_info=[helper.make_tensor_value_info("hq", TensorProto.UINT8, SHAPE, "codes")],
    )
    model = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", opset), helper.make_opsetid("ai.onnx.ml", 3)],
        producer_name="tool",
        producer_version="1.2",
        domain="org.example",
        model_version=7,
        doc_string="of the model",
    )
    model.ir_version = 8
    helper.set_model_props(model, {"author": "someone"})
    return model


def values(protos: Any) -> dict[str, onnx.ValueInfoProto]:
    return {value.name: value for value in protos}


@pytest.mark.parametrize("form", FORMS)
def test_what_a_model_says_comes_out_again(form: Any) -> None:
    model = described_model()
    exported = intonnx.to_onnx(intonnx.import_model(model), form=form)
    onnx.checker.check_model(exported, full_check=True)
    for field in ("producer_name", "producer_version", "domain", "model_version", "doc_string"):
        assert getattr(exported, field) == getattr(model, field)
    assert (exported.graph.name, exported.graph.doc_string) == ("net", "of the graph")
    properties = {entry.key: entry.value for entry in exported.metadata_props}
    assert properties["author"] == "someone"
    assert properties["intonnx.version"] == intonnx.__version__
    assert properties["intonnx.numerics"] == form
    # Types, dynamic axes, texts and denotations, also those of inputs that nothing reads.
    assert list(exported.graph.input) == list(model.graph.input)
    assert list(exported.graph.output) == list(model.graph.output)
    assert "gain_of_y" in {node.name for node in exported.graph.node}
    inner = values(exported.graph.value_info)
    assert inner["hq"].doc_string == "codes"
    assert all(value.type.tensor_type.HasField("shape") for value in inner.values())
    assert {(e.domain, e.version) for e in exported.opset_import} == {("", 17)}


@pytest.mark.parametrize("form", FORMS)
def test_it_survives_a_second_time_and_a_saved_graph(form: Any) -> None:
    graph = intonnx.import_model(described_model())
    once = intonnx.to_onnx(intonnx.parse(str(graph), weights=graph.constants), form=form)
    again = intonnx.to_onnx(intonnx.import_model(once), form=form)
    assert list(again.graph.input) == list(once.graph.input)
    assert list(again.graph.output) == list(once.graph.output)
    assert list(again.metadata_props) == list(once.metadata_props)
    assert values(again.graph.value_info)["hq"] == values(once.graph.value_info)["hq"]


@pytest.mark.parametrize("form", FORMS)
def test_defaults_of_inputs_can_be_given_and_left_out(form: Any) -> None:
    model = described_model()
    exported = intonnx.to_onnx(intonnx.import_model(model), form=form)
    x = np.linspace(-3, 3, 96, dtype=np.float32).reshape(2, 4, 2, 6)
    inputs: dict[str, Array] = {"x": x, "unused": np.zeros(3, np.int64)}
    for given in (inputs, {**inputs, "gain": np.asarray([3], np.float32)}):
        wanted = run_onnxruntime(model, given, optimized=False)
        found = run_onnxruntime(exported, given, optimized=False)
        np.testing.assert_array_equal(found["y"], wanted["y"])


@pytest.mark.parametrize("metadata", [{"denotations": 1}, {"denotations": {"x": ["A"]}}])
def test_metadata_of_another_kind_are_not_written(metadata: Mapping[str, Any]) -> None:
    text = str(intonnx.import_model(described_model())).split("\nmetadata ")[0]
    graph = intonnx.parse(text)
    graph = type(graph)(**{**vars(graph), "metadata": metadata})
    exported = intonnx.to_onnx(graph)
    assert values(exported.graph.input)["x"].type.denotation == ""


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("opset", [13, 15, 18, 21, 25])
def test_the_opset_can_be_chosen(opset: int, form: Any) -> None:
    model = described_model()
    exported = intonnx.to_onnx(intonnx.import_model(model), form=form, opset=opset)
    onnx.checker.check_model(exported, full_check=True)
    assert {e.domain: e.version for e in exported.opset_import}[""] == opset
    x = np.linspace(-3, 3, 96, dtype=np.float32).reshape(2, 4, 2, 6)
    inputs = {"x": x, "unused": np.zeros(3, np.int64)}
    wanted = run_onnxruntime(model, inputs, optimized=False)
    found = run_onnxruntime(exported, inputs, optimized=False)
    np.testing.assert_array_equal(found["y"], wanted["y"])


def wide_codes() -> onnx.ModelProto:
    build = Builder(21)
    params = Params(np.int16, 0.01, 0)
    x = build.feed("x", (2, 3), np.float32)
    build.output(build.dequantize(build.quantize(x, params), params), np.float32)
    return build.model()


def mish() -> onnx.ModelProto:
    """An operator of opset 18 on real values that nothing quantizes."""
    build = Builder(18)
    x = build.feed("x", (2, 3), np.float32)
    build.output(build.node("Mish", [build.dequantize(build.quantize(x, u8(0.1)), u8(0.1))]),
                 np.float32)  # fmt: skip
    return build.model()


@pytest.mark.parametrize(
    ("model", "opset", "message"),
    [
        (
            described_model(),
            12,
            "opset 12 cannot be written: the codes of this graph need opset 13",
        ),
        (described_model(), 999, "the onnx package knows opsets up to"),
        (wide_codes(), 20, "opset 20 cannot be written: the codes of this graph need opset 21"),
        (mish(), 17, "Mish.* cannot be written at opset 17: there it does not exist"),
    ],
    ids=["old", "unknown", "wide-codes", "operator"],
)
def test_an_opset_that_cannot_be_written(model: onnx.ModelProto, opset: int, message: str) -> None:
    graph = intonnx.import_model(model)
    with pytest.raises(intonnx.ExportFailure, match=message):
        intonnx.to_onnx(graph, opset=opset)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", SAMPLE, ids=lambda case: case.id)
def test_standard_models_have_operators_of_onnx_alone(case: Case, form: Any) -> None:
    model, _ = case.pattern.draw(case.storage, case.from_codes, 0)
    exported = intonnx.to_onnx(intonnx.import_model(model), form=form, runtime="standard")
    onnx.checker.check_model(exported, full_check=True)
    assert {node.domain for node in exported.graph.node} == {""}
    assert [entry.domain for entry in exported.opset_import] == [""]
