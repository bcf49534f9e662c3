"""qnn.identity, and the operators that do nothing: Identity, Dropout, Cast to the same type."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import intonnx
from intonnx.ir.ops.identity import Identity
from intonnx.ir.reasons import Code
from support.models import Builder, Fed, Held, Operand, Params, qdq_model, run_inputs, s8, u8
from support.movers import CASES, check_same, kind, names_of, per_axis
from support.runtime import run_onnxruntime
from support.wings import apart, refusal_of

FLOAT = {"to": onnx.TensorProto.FLOAT}


def test_the_result_type_is_that_of_the_operand() -> None:
    for x in (kind(("N", 3), axis=1, n=3), kind(None)):
        assert Identity().infer([x]) == (x,)


@pytest.mark.parametrize(("op_type", "attrs"), [("Identity", {}), ("Dropout", {}), ("Cast", FLOAT)])
def test_nothing_is_left_between_equal_quantizers(op_type: str, attrs: dict[str, int]) -> None:
    for before, after, quantized in [*CASES, (per_axis(3, 1), per_axis(3, 1), True)]:
        fed = Fed("x", (2, 3), before, quantized)
        graph = check_same(qdq_model(op_type, [fed], out=after, attrs=attrs))
        assert set(names_of(graph)) <= {"qnn.requantize"}


@pytest.mark.parametrize("opset", [10, 12, 13, 22])
def test_dropout_at_every_opset(opset: int) -> None:
    given: list[Operand] = [Held(np.float32(0.5)), Held(np.array(False))] if opset >= 12 else []
    attrs = {} if opset >= 12 else {"ratio": 0.5}
    fed = Fed("x", (2, 3), u8(0.1, 3))
    model = qdq_model("Dropout", [fed, *given], out=u8(0.1, 3), attrs=attrs, opset=opset)
    assert not {"qnn.identity", "onnx.Dropout"} & set(names_of(check_same(model)))


def dropout(training: bool, *, mask: bool) -> onnx.ModelProto:
    build = Builder()
    x = build.operand(Fed("x", (2, 3), u8(0.1, 3)), 0)
    names = [build.constant("ratio", np.float32(0.5)), build.constant("train", np.array(training))]
    moved = build.node("Dropout", [x, *names], name="drop", results=2)
    build.output(build.quantize(moved, u8(0.1, 3), "y"), np.uint8)
    if mask:
        build.output("drop_1", np.bool_)
    return build.model()


def test_a_mask_that_nothing_reads_is_dropped() -> None:
    assert set(names_of(check_same(dropout(False, mask=False)))) <= {"qnn.requantize"}


@pytest.mark.parametrize(("training", "mask"), [(True, False), (False, True)])
def test_training_and_a_mask_that_is_read_are_refused(training: bool, mask: bool) -> None:
    assert refusal_of(dropout(training, mask=mask), "Dropout")[0] == Code.UNSUPPORTED_ATTRIBUTE


def test_a_cast_that_changes_the_type_stays() -> None:
    fed = Fed("x", (2, 3), u8(0.1, 3))
    model = qdq_model("Cast", [fed], attrs={"to": onnx.TensorProto.DOUBLE})
    nodes = intonnx.coverage(intonnx.import_model(model)).nodes
    assert [node.state for node in nodes if node.op == "Cast"] == ["float"]
    x = run_inputs(model)
    wanted = run_onnxruntime(model, x, optimized=False)
    apart(intonnx.compile(intonnx.import_model(model)).run(x), wanted, 0)


@pytest.mark.parametrize("params", [u8(0.1, 3), per_axis(3, 1)])
def test_an_identity_on_codes(params: Params) -> None:
    build = Builder()
    codes = build.quantize(build.feed("x", (2, 3), np.float32), params, "codes")
    same = build.node("Identity", [codes], name="same")
    build.output(build.dequantize(same, params, "y"), np.float32)
    build.output(build.node("Identity", [same], name="again"), params.dtype)
    graph = check_same(build.model())
    # Only an output that is the same value as another name needs an operator.
    assert names_of(graph) == ["qnn.identity"]


def test_an_identity_from_a_graph_input_to_a_graph_output() -> None:
    build = Builder()
    build.output(build.node("Identity", [build.feed("x", (2, 3), np.int8)], name="y"), np.int8)
    assert names_of(check_same(build.model())) == ["qnn.identity"]


def test_a_constant_through_an_identity() -> None:
    build = Builder()
    x = build.operand(Held(np.arange(6, dtype=np.int8).reshape(2, 3), per_axis(3, 1)), 0)
    build.output(build.node("Neg", [build.node("Identity", [x])], name="y"), np.float32)
    assert names_of(intonnx.import_model(build.model())) == ["onnx.Neg"]


def test_quantizers_move_up_through_an_identity() -> None:
    build = Builder()
    x = build.feed("x", (2, 3), np.float32)
    same = build.node("Identity", [build.node("Dropout", [x])])
    build.output(build.quantize(same, s8(0.1, 3), "y"), np.int8)
    graph = check_same(build.model())
    assert [node.op.name for node in graph.nodes] == ["qnn.quantize"]
