"""qnn.compare against onnxruntime on the original model."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import intonnx
from intonnx.ir.ops.compare import Compare, Relation
from intonnx.ir.types import DType, plain, quantized
from support import pairs, strategies
from support.models import Array, Builder, Fed, Held, Operand, Params, run_inputs, s8, u8, u16
from support.strategies import BinaryCase
from support.wings import check_model, refusal_of

RELATIONS: dict[str, Relation] = {
    "Equal": "equal",
    "Less": "less",
    "LessOrEqual": "less_or_equal",
    "Greater": "greater",
    "GreaterOrEqual": "greater_or_equal",
}
CODES = quantized(pairs.OUT, (3,))


def compare_model(op_type: str, sides: list[Operand], opset: int = 21) -> onnx.ModelProto:
    build = Builder(opset)
    names = [build.operand(side, i) for i, side in enumerate(sides)]
    build.output(build.node(op_type, names, name="y"), np.bool_)
    return build.model()


def check(model: onnx.ModelProto, inputs: dict[str, Array]) -> intonnx.Graph:
    graph = check_model(model, inputs, quanta=0)
    assert isinstance(graph.nodes[-1].op, Compare)
    assert intonnx.parse(str(graph), weights=graph.constants) == graph
    return graph


def test_c1_c2() -> None:
    op = Compare(relation="less")
    with pytest.raises(intonnx.TypeFailure, match="C1"):
        op.infer((plain(DType.F32, (3,)), plain(DType.F32, (3,))))
    with pytest.raises(intonnx.TypeFailure, match="C1"):
        op.infer((CODES, plain(DType.F16, (3,))))
    with pytest.raises(intonnx.TypeFailure, match="C2"):
        op.infer((CODES, CODES.with_shape((2,))))
    assert op.infer((CODES.with_shape(("N", 1)), CODES))[0] == plain(DType.BOOL, ("N", 3))


@given(strategies.binary_cases(mixed=True), st.sampled_from(list(RELATIONS)), st.booleans())
@settings(max_examples=60)
def test_compare_through_every_wing(case: BinaryCase, op_type: str, fed_codes: bool) -> None:
    sides: list[Operand] = [
        Fed("a", case.a.shape, case.a_params, fed_codes),
        Fed("b", case.b.shape, case.b_params, fed_codes),
    ]
    inputs = {"a": case.a, "b": case.b}
    if not fed_codes:
        inputs = {k: v.astype(np.float32) for k, v in inputs.items()}
    check(compare_model(op_type, sides), inputs)


@pytest.mark.parametrize("op_type", RELATIONS)
@pytest.mark.parametrize("b_params", [u8(0.5, 3), u8(0.25, 9), s8(0.5, -125), s8(1 / 3, 0)])
def test_every_pair_of_codes(op_type: str, b_params: Params) -> None:
    b = pairs.ALL.view(np.dtype(b_params.dtype))
    sides: list[Operand] = [
        Fed("a", (256, 1), u8(0.5, 3), quantized=True),
        Fed("b", (256,), b_params, quantized=True),
    ]
    graph = check(compare_model(op_type, sides), {"a": pairs.ALL[:, None], "b": b})
    exported = {node.op_type for node in intonnx.to_onnx(graph).graph.node}
    assert (exported == {op_type}) == (b_params == u8(0.5, 3))


@pytest.mark.parametrize("scale", [1e-45, 3e38])
def test_codes_that_are_equal_as_real_values(scale: float) -> None:
    sides: list[Operand] = [
        Fed("a", (256, 1), u8(scale, 3), quantized=True),
        Fed("b", (256,), u8(scale, 3), quantized=True),
    ]
    check(compare_model("Equal", sides), {"a": pairs.ALL[:, None], "b": pairs.ALL})


@pytest.mark.parametrize("op_type", RELATIONS)
@pytest.mark.parametrize("held", [*pairs.HELD, "scalar", "scalar codes"])
@pytest.mark.parametrize("first", [False, True])
def test_a_constant_operand(op_type: str, held: Any, first: bool) -> None:
    side = {"scalar": Held(np.float32(0.3)), "scalar codes": Held(np.uint8(9), u8(0.1))}.get(
        str(held)
    ) or pairs.constant(held)
    sides: list[Operand] = [Fed("x", (2, 3, 4), s8(0.02, -14)), side]
    model = compare_model(op_type, sides[::-1] if first else sides)
    check(model, run_inputs(model))


@pytest.mark.parametrize("opset", [11, 13])
@pytest.mark.parametrize("op_type", ["Equal", "Less", "Greater"])
def test_at_other_opsets(opset: int, op_type: str) -> None:
    sides: list[Operand] = [Fed("a", (9,), u8(0.1, 3)), Fed("b", (9,), u8(0.2, 3))]
    model = compare_model(op_type, sides, opset)
    check(model, run_inputs(model))


def test_a_threshold_of_16_bit_codes() -> None:
    model = compare_model("Greater", [Fed("x", (5, 7), u16(0.001, 30000)), Held(np.float32(0.5))])
    check(model, run_inputs(model))


def test_a_float_operand_is_refused() -> None:
    model = compare_model("Less", [Fed("a", (4,), u8(0.1, 3)), Fed("b", (4,))])
    code, detail = refusal_of(model, "Less")
    assert code == "input-not-quantized"
    assert "'b' arrives as float" in detail


def test_integers_of_the_model_are_compared_as_they_are() -> None:
    model = compare_model("Less", [Fed("a", (4,), dtype=np.int32), Held(np.int32(3))])
    graph = intonnx.import_model(model)
    assert [node.op.title for node in graph.nodes] == ["onnx.Less"]
    assert intonnx.coverage(graph).float == 0
