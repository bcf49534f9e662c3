"""QDQ -> QLinear -> QDQ and back keeps scales, zero points, weight codes and results."""

from __future__ import annotations

import json

import numpy as np
import onnx
import pytest

import intonnx
from support.models import Array, Builder, Fed, Held, Params, s8, u8

FORMS = [("qlinear", "qdq"), ("qdq", "qlinear")]
CHANGES = "intonnx.changes"


def network(activations: str) -> onnx.ModelProto:
    """Two convolutions, a sum of which one branch is limited, and a pool; extreme s8 weights."""
    build = Builder(17)
    rng = np.random.default_rng(0)
    kind = s8 if activations == "s8" else u8

    def quantized(value: str, params: Params) -> str:
        return build.dequantize(build.quantize(value, params), params)

    x = build.operand(Fed("x", (2, 4, 8, 8), kind(0.05, 3)), 0)
    x = build.dequantize(build.quantize(x, kind(0.05, 3)), kind(0.05, 3))
    w = build.operand(Held(rng.integers(-128, 128, (4, 4, 3, 3)), s8(0.01)), 1)
    c = quantized(build.node("Conv", [x, w], pads=[1, 1, 1, 1]), kind(0.07, 5))
    r = quantized(build.node("Relu", [c]), kind(0.04, 0 if activations == "u8" else -128))
    total = quantized(build.node("Add", [r, x]), kind(0.06, 7))
    pooled = build.node("MaxPool", [total], kernel_shape=[2, 2], strides=[2, 2])
    build.output(quantized(pooled, kind(0.06, 7)))
    return build.model()


def parameters(graph: intonnx.Graph) -> set[tuple[object, ...]]:
    """The parameters of every quantized value, with the codes of weights."""
    found: set[tuple[object, ...]] = set()
    for name, kind in graph.types.items():
        if kind.quant is None or kind.dtype == "i32":
            continue
        q, codes = kind.quant, graph.constants.get(name)
        content = None if codes is None else codes.tobytes()
        found.add((q.storage, q.scale.tobytes(), q.zero_point.tobytes(), content))
    return found


def named(graph: intonnx.Graph, names: set[str]) -> dict[str, object]:
    return {name: graph.types[name].quant for name in names & graph.types.keys()}


def image() -> Array:
    return np.random.default_rng(1).normal(0, 3, (2, 4, 8, 8)).astype(np.float32)


@pytest.mark.parametrize("activations", ["s8", "u8"])
@pytest.mark.parametrize("forms", FORMS, ids=["qlinear-first", "qdq-first"])
def test_round_trips_keep_parameters_codes_and_results(
    activations: str, forms: tuple[str, str]
) -> None:
    model = network(activations)
    graph = intonnx.import_model(model)
    wanted = intonnx.compile(graph).run({"x": image()})
    names = {name for node in model.graph.node for name in node.output if name in graph.types}
    for form in (*forms, forms[0]):
        exported = intonnx.to_onnx(intonnx.import_model(model), form=form)  # type: ignore[arg-type]
        again = intonnx.import_model(exported)
        assert parameters(again) == parameters(graph)
        assert named(again, names) == named(graph, names)
        for name, array in intonnx.compile(again).run({"x": image()}).items():
            np.testing.assert_array_equal(array, wanted[name])
        model = exported


def test_what_an_operator_reads_as_plain_integers_stays_and_the_rest_goes_back() -> None:
    model = network("s8")
    graph = intonnx.import_model(model)
    exported = intonnx.to_onnx(graph)
    # Somebody adds an operator that reads what the export made u8.
    (pool,) = [node for node in exported.graph.node if node.op_type == "MaxPool"]
    codes = pool.input[0]
    exported.graph.node.append(onnx.helper.make_node("Cast", [codes], ["sums"], to=6))
    exported.graph.output.append(onnx.helper.make_tensor_value_info("sums", 6, None))
    again = intonnx.import_model(exported)
    assert again.types[codes].dtype == "u8"
    assert {"i8"} == {
        kind.dtype for name, kind in again.types.items()
        if kind.quant is not None and name in graph.types and kind.dtype != "i32"
        and name not in (codes, *again.producers[codes].operands, pool.output[0])
    }  # fmt: skip
    wanted = intonnx.compile(graph).run({"x": image()})
    found = intonnx.compile(again).run({"x": image()})
    for name, array in wanted.items():
        np.testing.assert_array_equal(found[name], array)


def test_only_what_the_export_moved_is_moved_back() -> None:
    exported = intonnx.to_onnx(intonnx.import_model(network("s8")))
    (entry,) = [entry for entry in exported.metadata_props if entry.key == CHANGES]
    entry.value = "{}"
    plain = intonnx.import_model(exported)
    kinds = [plain.types[name] for node in plain.nodes for name in node.results]
    assert "u8" in {str(kind.dtype) for kind in kinds if kind.quant}


@pytest.mark.parametrize(
    "value",
    [
        "not JSON",
        json.dumps({"storage": {"x": {"name": 1}}}),
        json.dumps({"storage": {"none": {"name": "n", "storage": "i8", "zero": [0]}}}),
        json.dumps({"scales": {"none": [1.0, 2.0]}}),
        json.dumps({"storage": {"$": {"name": "n", "storage": "i8", "zero": [10**30]}}}),
        json.dumps({"storage": {"$": {"name": "n", "storage": "i8", "zero": [127]}}}),
        json.dumps({"storage": {"$": {"name": "n", "storage": "f32", "zero": [0]}}}),
        json.dumps({"storage": {"$": {"name": "", "storage": "i8", "zero": [0]}}}),
        json.dumps({"storage": {"$": {"name": "n", "storage": "u8", "zero": [3], "scale": [9.0]}}}),
        json.dumps({"multipliers": {"$": {"sums": [1.0], "out": [2.0]}}}),
        json.dumps({"multipliers": {"$": {"sums": [], "out": [0.0]}}}),
        json.dumps({"recipes": {"$": [["Exp", [0], []]]}}),
        json.dumps({"recipes": {"$": [["Exp", [7], []], ["None", [0], []]]}}),
        json.dumps({"inputs": {"$": {"name": "", "storage": "u8", "zero": [9], "scale": [0.1]}}}),
        json.dumps({"outputs": {"$": {"name": "", "storage": "u8", "zero": [9], "scale": [0.1]}}}),
        '{"moves": {"$": {"source": "$", "scale": NaN, "zero": 0, "to_zero": 128}}}',
    ],
)
def test_metadata_that_lie_change_no_result(value: str) -> None:
    exported = intonnx.to_onnx(intonnx.import_model(network("s8")))
    wanted = intonnx.compile(intonnx.import_model(exported)).run({"x": image()})
    (entry,) = [entry for entry in exported.metadata_props if entry.key == CHANGES]
    entry.value = value
    if "$" in value:  # said of every value
        names = {n for node in exported.graph.node for n in (*node.input, *node.output)}
        said = json.loads(value)
        entry.value = json.dumps({k: dict.fromkeys(names, v["$"]) for k, v in said.items()})
    found = intonnx.compile(intonnx.import_model(exported)).run({"x": image()})
    for name, array in found.items():
        np.testing.assert_array_equal(array, wanted[name])


def test_exports_say_what_made_them_and_keep_what_the_model_said() -> None:
    model = network("u8")
    model.producer_name, model.producer_version = "someone", "1.2"
    model.domain, model.model_version, model.doc_string = "org.example", 7, "a model"
    model.metadata_props.add(key="author", value="nobody")
    for form, other in FORMS:
        exported = intonnx.to_onnx(intonnx.import_model(model), form=form)  # type: ignore[arg-type]
        exported = intonnx.to_onnx(intonnx.import_model(exported), form=other)  # type: ignore[arg-type]
        assert (exported.producer_name, exported.producer_version) == ("someone", "1.2")
        assert (exported.domain, exported.model_version) == ("org.example", 7)
        assert exported.doc_string == "a model"
        properties = {entry.key: entry.value for entry in exported.metadata_props}
        assert properties["author"] == "nobody"
        assert properties["intonnx.version"] == intonnx.__version__
        assert properties["intonnx.numerics"] == other
        onnx.checker.check_model(exported, full_check=True)
