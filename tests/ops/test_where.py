"""qnn.where: constraints, QLinearWhere against the plain model, and Where through every wing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import intonnx
from intonnx.ir.ops.where import Where
from intonnx.ir.types import DType, plain, quantized
from support import strategies
from support.bigint_pointwise import qlinear_where
from support.models import (
    Array,
    Builder,
    Fed,
    Held,
    Operand,
    Params,
    qdq_model,
    qoperator_model,
    run_inputs,
    s8,
    s16,
    u8,
)
from support.movers import check_same, names_of
from support.selections import OUT, TRIPLES, check_selection, check_types, refused
from support.strategies import BinaryCase
from support.wings import apart, check_model, refusal_of

RNG = np.random.default_rng(0)
CHOICE = plain(DType.BOOL, (3,))
CONDITION = Fed("c", (3, 1), dtype=np.bool_)
HELD_CONDITION = Held(np.array([[True], [False], [True]]))


def test_c1_types() -> None:
    check_types(Where(out=OUT), [(0, CHOICE)], [(2, 3), (3,)])


def test_c2_shapes_broadcast() -> None:
    with pytest.raises(intonnx.TypeFailure, match="C2"):
        Where(out=OUT).infer([CHOICE, quantized(OUT, (2,)), quantized(OUT, ())])
    kinds = [plain(DType.BOOL, ("N", 1)), quantized(OUT, (4,)), quantized(OUT, ())]
    assert Where(out=OUT).infer(kinds)[0].shape == ("N", 4)


def test_c3_the_condition_is_bool() -> None:
    with pytest.raises(intonnx.TypeFailure, match="C3"):
        Where(out=OUT).infer([plain(DType.U8, (3,)), quantized(OUT, (3,)), quantized(OUT, (3,))])


# -- QLinearWhere ---------------------------------------------------------------------------------


def qlinear_model(case: BinaryCase, condition: Sequence[int]) -> onnx.ModelProto:
    inputs: list[Any] = [Fed("c", condition, dtype=np.bool_)]
    for name, codes, side in (("a", case.a, case.a_params), ("b", case.b, case.b_params)):
        inputs += [Fed(name, codes.shape, dtype=codes.dtype)]
        inputs += [side.scale_array, side.zero_array[()]]
    inputs += [case.out.scale_array, case.out.zero_array[()]]
    return qoperator_model("QLinearWhere", inputs, case.a.dtype)


@given(strategies.binary_cases(), st.booleans())
@settings(max_examples=40)
def test_qlinear_where_is_onnxruntime_and_the_plain_model(case: BinaryCase, whole: bool) -> None:
    shape = np.broadcast_shapes(case.a.shape, case.b.shape)
    condition = np.random.default_rng(1).random(shape if whole else shape[-1:]) < 0.5
    inputs = {"c": condition, "a": case.a, "b": case.b}
    graph = check_model(qlinear_model(case, condition.shape), inputs, quanta=0)
    assert isinstance(graph.nodes[-1].op, Where)
    sides = [(p.scale_array, p.zero_array) for p in (case.a_params, case.b_params, case.out)]
    (sa, za), (sb, zb), (sy, zy) = sides
    wanted = qlinear_where(condition, case.a, sa, za, case.b, sb, zb, sy, zy)
    apart(intonnx.compile(graph).run(inputs), {"y": wanted}, 0)


def test_qlinear_where_with_a_scale_of_run_time_is_refused() -> None:
    inputs: list[Any] = [
        Fed("c", (4,), dtype=np.bool_),
        Fed("a", (4,), dtype=np.uint8), Fed("s", ()), np.uint8(3),
        Fed("b", (4,), dtype=np.uint8), np.float32(0.1), np.uint8(3), np.float32(1), np.uint8(0),
    ]  # fmt: skip
    code, detail = refusal_of(qoperator_model("QLinearWhere", inputs, np.uint8), "QLinearWhere")
    assert code == "runtime-parameters"
    assert "computed at run time" in detail


# -- between quantizers ---------------------------------------------------------------------------


@pytest.mark.parametrize("params", TRIPLES)
@pytest.mark.parametrize("fed_codes", [False, True])
@pytest.mark.parametrize("condition", [CONDITION, HELD_CONDITION])
def test_two_quantized_branches(
    params: tuple[Params, ...], fed_codes: bool, condition: Operand
) -> None:
    x, y, out = params
    inputs = [condition, Fed("a", (2, 3, 4), x, fed_codes), Fed("b", (4,), y, fed_codes)]
    graph = check_selection("Where", inputs, out, "qnn.where")
    operators = {node.op_type for node in intonnx.to_onnx(graph).graph.node}
    if {np.dtype(p.dtype) for p in params} in ({np.dtype(np.uint8)}, {np.dtype(np.int8)}):
        assert ("Where" in operators) == (x == y == out)
        assert ("QLinearWhere" in operators) == (not x == y == out)


@pytest.mark.parametrize("value", [-1e9, 0.0, 0.37, np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("x", [u8(0.02, 114), s8(0.5, -128), s16(0.001, 5)])
@pytest.mark.parametrize("first", [False, True])
def test_a_float_scalar_saturates(value: float, x: Params, first: bool) -> None:
    branches: list[Operand] = [Fed("a", (2, 3, 4), x), Held(np.float32(value))]
    inputs = [CONDITION, *(branches[::-1] if first else branches)]
    check_selection("Where", inputs, x, "qnn.where")
    check_selection("Where", inputs, Params(x.dtype, 0.3, 100), "qnn.where")


def test_float_constants_and_constants_through_a_dequantizer() -> None:
    for held in (
        Held(RNG.standard_normal((3, 4)).astype(np.float32)),
        Held(np.arange(4), s8(0.7, 3)),
        Held(np.arange(12).reshape(3, 4), s8([0.02, 0.1, 0.5], [0, 5, -5], axis=0)),
        Held(np.arange(4), s16(0.001, 3)),
    ):
        inputs = [CONDITION, Fed("a", (2, 3, 4), u8(0.02, 114)), held]
        check_selection("Where", inputs, u8(0.03, 90), "qnn.where")


def test_two_constant_branches() -> None:
    inputs = [CONDITION, Held(np.float32(0.7)), Held(np.float32([1, -2, -1e9]))]
    check_selection("Where", inputs, s8(0.03, 9), "qnn.where")


@pytest.mark.parametrize("opset", [11, 13, 16])
def test_at_every_opset(opset: int) -> None:
    inputs = [CONDITION, Fed("a", (3, 4), u8(0.1, 3)), Fed("b", (4,), u8(0.2, 9))]
    check_selection("Where", inputs, u8(0.2, 5), "qnn.where", opset=opset)


def test_every_code_of_both_branches() -> None:
    for x, y, out in ((u8(0.5, 3), u8(1 / 3, 255), u8(0.25, 9)), (u8(1, 0), s8(1, 0), s8(2, -9))):
        build = Builder()
        names = [build.feed("c", (256,), np.bool_)]
        sides = [Fed("a", (256,), x, quantized=True), Fed("b", (256,), y, quantized=True)]
        names += [build.operand(side, i) for i, side in enumerate(sides)]
        build.output(build.quantize(build.node("Where", names), out, "z"), out.dtype)
        codes = np.arange(256, dtype=np.uint8)
        for condition in (codes % 2 == 0, codes % 2 == 1):
            inputs: dict[str, Array] = {"c": condition, "a": codes}
            inputs["b"] = codes.view(np.dtype(y.dtype))
            check_model(build.model(), inputs, quanta=0)


def test_the_condition_is_a_comparison_and_the_quantizer_moves_up() -> None:
    build = Builder()
    x = build.operand(Fed("a", (2, 3, 5, 5), u8(0.02, 114), quantized=True), 0)
    weights = build.operand(Held(RNG.integers(-99, 99, (3, 3, 1, 1)), s8(0.01)), 1)
    condition = build.node("Greater", [x, build.constant("threshold", np.float32(0.3))])
    chosen = build.node("Where", [condition, build.node("Conv", [x, weights]), x])
    build.output(build.quantize(chosen, u8(0.05, 3), "y"), np.uint8)
    graph = check_model(build.model(), run_inputs(build.model()), literal_quanta=1)
    expected = ["qnn.compare", "qnn.conv2d", "qnn.requantize", "qnn.where"]
    assert sorted(names_of(graph)) == expected


def test_codes_of_equal_parameters_need_no_quantizer() -> None:
    inputs = [CONDITION, Fed("a", (3, 4), s8(0.1, 3)), Held(np.float32(0.5))]
    assert "qnn.where" in names_of(check_same(qdq_model("Where", inputs)))


def test_codes_that_the_model_chooses_itself() -> None:
    build = Builder()
    names = [build.quantize(build.feed(n, (4,), np.float32), u8(0.1, 3), f"{n}q") for n in "ab"]
    chosen = build.node("Where", [build.feed("c", (4,), np.bool_), *names])
    build.output(build.dequantize(chosen, u8(0.1, 3), "y"), np.float32)
    assert "qnn.where" in names_of(check_same(build.model()))


def test_int64_is_left_to_the_reference() -> None:
    build = Builder()
    names = [build.feed("c", (4,), np.bool_), *(build.feed(n, (4,), np.int64) for n in "ab")]
    build.output(build.node("Where", names, name="y"), np.int64)
    assert names_of(intonnx.import_model(build.model())) == ["onnx.Where"]


def test_refusals() -> None:
    x = Fed("a", (3, 4), u8(0.1, 3))
    for other in (Fed("b", (4,), u8(0.1, 4)), Held(np.float32(-1e9))):
        model = qdq_model("Where", [CONDITION, x, other])
        refused(model, "Where", "output-not-quantized", "cannot join 'a_q' as codes")
    several = u8([0.1] * 4, 3, axis=1)
    refused(
        qdq_model("Where", [CONDITION, x, Fed("b", (4,), u8(0.1))], out=several),
        "Where",
        "per-axis-input",
    )
    model = qdq_model("Where", [CONDITION, x, Fed("b", (4,))])
    refused(model, "Where", "input-not-quantized", "'b' arrives as float")
