"""qnn.add and qnn.subtract against the plain model, onnxruntime, and the literal QDQ model."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import intonnx
from intonnx.ir.ops.add import Add
from intonnx.ir.types import DType, QuantParams, TensorType, plain, quantized
from support import bigint, strategies
from support.models import (
    Array,
    Builder,
    Fed,
    Held,
    Params,
    qdq_model,
    qoperator_model,
    s8,
    s16,
    s32,
    u8,
    u16,
)
from support.runtime import run_onnxruntime
from support.strategies import BinaryCase
from support.wings import apart, check_model, refusal_of

RNG = np.random.default_rng(0)


def params(storage: DType = DType.U8, axis: int | None = None, **more: Any) -> QuantParams:
    shape = () if axis is None else (3,)
    scale, zero = np.full(shape, 0.5), np.full(shape, 1)
    return QuantParams(storage=storage, scale=scale, zero_point=zero, axis=axis, **more)


def codes_type(shape: tuple[int | str, ...], **more: Any) -> TensorType:
    return quantized(params(**more), shape)


def fed(case: BinaryCase) -> tuple[list[Fed], dict[str, Array]]:
    sides = [
        Fed("a", case.a.shape, case.a_params, quantized=True),
        Fed("b", case.b.shape, case.b_params, quantized=True),
    ]
    return sides, {"a": case.a, "b": case.b}


# -- constraints ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (plain(DType.F32, (3,)), plain(DType.F32, (3,))),
        (codes_type((3,)), plain(DType.F16, (3,))),
        (codes_type((3,)), plain(DType.U8, (3,))),
        (codes_type((3,)), codes_type((3,), expressed=DType.F16)),
        (codes_type((3,)), quantized(params(storage=DType.I64), (3,))),
    ],
)
def test_c1_needs_codes_of_one_real_type(a: TensorType, b: TensorType) -> None:
    for pair in ((a, b), (b, a)):
        with pytest.raises(intonnx.TypeFailure, match="C1"):
            Add(out=params()).infer(pair)


def test_c1_refuses_blocks() -> None:
    blocked = QuantParams(
        storage=DType.U8, scale=np.ones((2,)), zero_point=np.zeros((2,)), axis=0, block=2
    )
    with pytest.raises(intonnx.TypeFailure, match="C1"):
        Add(out=params()).infer((quantized(blocked, (4,)), codes_type((4,))))


def test_c2_refuses_shapes_that_do_not_broadcast() -> None:
    with pytest.raises(intonnx.TypeFailure, match="C2"):
        Add(out=params()).infer((codes_type((2, 3)), codes_type((2,))))


@pytest.mark.parametrize(
    ("a", "b", "shape"),
    [
        (("N", 1), (4,), ("N", 4)),
        (("N", 3), ("N", 3), ("N", 3)),
        (("N",), (4,), (4,)),
        (("N",), ("M",), ("?",)),
        ((), ("N", 1), ("N", 1)),
    ],
)
def test_c2_symbols_broadcast(
    a: tuple[int | str, ...], b: tuple[int | str, ...], shape: tuple[int | str, ...]
) -> None:
    assert Add(out=params()).infer((codes_type(a), codes_type(b)))[0].shape == shape
    assert Add(out=params()).infer((codes_type(b), codes_type(a)))[0].shape == shape


def test_c2_an_unknown_rank_stays_unknown() -> None:
    unknown = codes_type((3,)).with_shape(None)
    assert Add(out=params()).infer((unknown, codes_type((3,))))[0].shape is None


def test_c3_the_result_has_one_scale() -> None:
    with pytest.raises(intonnx.TypeFailure, match="C3"):
        Add(out=params(axis=0)).infer((codes_type((3,)), codes_type((3,))))


# -- 8-bit operands -------------------------------------------------------------------------------


@given(strategies.binary_cases())
def test_add_is_the_qlinear_kernel(case: BinaryCase) -> None:
    sides, inputs = fed(case)
    graph = intonnx.import_model(qdq_model("Add", sides, out=case.out))
    (sa, za), (sb, zb), (sy, zy) = (
        (p.scale_array, p.zero_array[()]) for p in (case.a_params, case.b_params, case.out)
    )
    wanted = bigint.qlinear_add(case.a, sa, za, case.b, sb, zb, sy, zy)
    np.testing.assert_array_equal(intonnx.compile(graph).run(inputs)["y"], wanted)


@given(strategies.binary_cases(dtype=np.uint8), st.booleans())
@settings(max_examples=40)
def test_every_pair_of_codes(case: BinaryCase, rows: bool) -> None:
    column, row = np.arange(256, dtype=np.uint8)[:, None], np.arange(256, dtype=np.uint8)
    a, b = (column, row) if rows else (row, column)
    sides, inputs = fed(BinaryCase(a, b, case.a_params, case.b_params, case.out))
    graph = intonnx.import_model(qdq_model("Add", sides, out=case.out))
    exported = run_onnxruntime(intonnx.to_onnx(graph), inputs, optimized=False)
    apart(intonnx.compile(graph).run(inputs), exported, 0)


@given(strategies.binary_cases())
@settings(max_examples=40)
def test_add_through_every_wing(case: BinaryCase) -> None:
    sides, inputs = fed(case)
    graph = check_model(qdq_model("Add", sides, out=case.out), inputs)
    assert [type(node.op).__name__ for node in graph.nodes][-1] == "Add"


@given(strategies.binary_cases(mixed=True), st.sampled_from(["Add", "Sub"]))
@settings(max_examples=50)
def test_mixed_and_16_bit_operands_are_literal(case: BinaryCase, op_type: str) -> None:
    kinds = {np.dtype(p.dtype) for p in (case.a_params, case.b_params, case.out)}
    one_kind = len(kinds) == 1 and kinds.pop().itemsize == 1
    quanta = 1 if one_kind and op_type == "Add" else 0
    sides, inputs = fed(case)
    check_model(qdq_model(op_type, sides, out=case.out), inputs, quanta=quanta, kernel=False)


@given(strategies.binary_cases())
@settings(max_examples=10)
def test_a_sum_of_two_is_an_add(case: BinaryCase) -> None:
    sides, inputs = fed(case)
    graph = check_model(qdq_model("Sum", sides, out=case.out), inputs)
    assert isinstance(graph.nodes[-1].op, Add)


@given(strategies.binary_cases())
@settings(max_examples=30)
def test_subtract_is_literal(case: BinaryCase) -> None:
    sides, inputs = fed(case)
    check_model(qdq_model("Sub", sides, out=case.out), inputs, quanta=0, kernel=False)


def test_float_inputs_and_a_float_output() -> None:
    sides = [Fed("a", (2, 3, 4), u8(0.02, 114)), Fed("b", (3, 1), u8(0.03, 0))]
    model = qdq_model("Add", sides, out=u8(0.05, 90), float_output=True)
    inputs = {
        "a": RNG.standard_normal((2, 3, 4)).astype(np.float32),
        "b": RNG.standard_normal((3, 1)).astype(np.float32),
    }
    graph = intonnx.import_model(model)
    found = intonnx.compile(graph).run(inputs)["y"]
    wanted = run_onnxruntime(model, inputs, optimized=False)["y"]
    assert np.abs(found - wanted).max() <= 0.05 * 1.001
    apart(run_onnxruntime(intonnx.to_onnx(graph), inputs, optimized=True), {"y": found}, 0)


def test_an_operand_added_to_itself() -> None:
    build = Builder()
    x = build.operand(Fed("x", (5, 7), s8(0.5, 3), quantized=True), 0)
    build.output(build.quantize(build.node("Add", [x, x]), s8(0.75, -9), "y"), np.int8)
    x_codes = RNG.integers(-128, 128, (5, 7)).astype(np.int8)
    check_model(build.model(), {"x": x_codes})


@pytest.mark.parametrize("shape", [(), (1,), (1, 1), (4,), (3, 1), (2, 3, 4), (1, 2, 3, 4)])
@pytest.mark.parametrize("first", [False, True])
def test_a_constant_operand(shape: tuple[int, ...], first: bool) -> None:
    held = Held(RNG.integers(0, 256, shape), u8(0.031, 17))
    sides = [Fed("x", (2, 3, 4), u8(0.02, 114), quantized=True), held]
    model = qdq_model("Add", sides[::-1] if first else sides, out=u8(0.05, 90))
    check_model(model, {"x": RNG.integers(0, 256, (2, 3, 4)).astype(np.uint8)})


@pytest.mark.parametrize("held", [s16(0.001, -7), s32(0.0001), u16(0.001, 500), s8(0.02, 3)])
def test_a_constant_of_another_storage(held: Params) -> None:
    value = RNG.integers(-100 if np.dtype(held.dtype).kind == "i" else 0, 100, (3, 1))
    sides = [Fed("x", (2, 3, 4), u8(0.02, 114), quantized=True), Held(value, held)]
    inputs = {"x": RNG.integers(0, 256, (2, 3, 4)).astype(np.uint8)}
    check_model(qdq_model("Add", sides, out=u8(0.05, 90)), inputs, quanta=0, kernel=False)


def test_a_constant_with_a_scale_for_each_channel() -> None:
    held = Held(RNG.integers(-128, 128, (3, 1)), s8([0.02, 0.1, 0.5], [0, 5, -5], axis=0))
    sides = [Fed("x", (2, 3, 4), s8(0.02, 14), quantized=True), held]
    inputs = {"x": RNG.integers(-128, 128, (2, 3, 4)).astype(np.int8)}
    check_model(qdq_model("Add", sides, out=s8(0.05, 9)), inputs, quanta=0, kernel=False)


@pytest.mark.parametrize("op_type", ["Add", "Sub"])
@pytest.mark.parametrize("shape", [(3, 1), (2, 3, 4)])
@pytest.mark.parametrize("first", [False, True])
def test_a_float_constant_stays_float(op_type: str, shape: tuple[int, ...], first: bool) -> None:
    held = Held(RNG.standard_normal(shape).astype(np.float32))
    sides = [Fed("x", (2, 3, 4), u8(0.02, 114), quantized=True), held]
    model = qdq_model(op_type, sides[::-1] if first else sides, out=u8(0.05, 90))
    inputs = {"x": RNG.integers(0, 256, (2, 3, 4)).astype(np.uint8)}
    check_model(model, inputs, quanta=0, kernel=False)


@pytest.mark.parametrize("op_type", ["Add", "Sub"])
@pytest.mark.parametrize("first", [False, True])
def test_a_scalar_float_constant(op_type: str, first: bool) -> None:
    sides = [Fed("x", (256,), u8(0.02, 114), quantized=True), Held(np.float32(1.37))]
    model = qdq_model(op_type, sides[::-1] if first else sides, out=u8(0.05, 90))
    check_model(model, {"x": np.arange(256, dtype=np.uint8)}, quanta=0, kernel=False)


@pytest.mark.parametrize("scale", [1e-38, 1e-20, 3e38])
def test_extreme_scales_stay_literal(scale: float) -> None:
    sides = [
        Fed("a", (256, 1), u8(scale, 114), quantized=True),
        Fed("b", (256,), u8(scale / 3, 7), quantized=True),
    ]
    codes = np.arange(256, dtype=np.uint8)
    model = qdq_model("Add", sides, out=u8(1.0, 90))
    check_model(model, {"a": codes[:, None], "b": codes}, quanta=1, kernel=False)


def test_a_scale_thousands_of_times_the_results() -> None:
    sides = [
        Fed("a", (256, 1), s8(5e4, 100), quantized=True),
        Fed("b", (256,), s8(0.01, -7), quantized=True),
    ]
    codes = np.arange(-128, 128).astype(np.int8)
    model = qdq_model("Add", sides, out=s8(0.01, 90))
    check_model(model, {"a": codes[:, None], "b": codes}, quanta=0, kernel=False)


def test_symbolic_shapes_decide_at_run_time() -> None:
    sides = [
        Fed("a", (3, "N"), u8(0.02, 114), quantized=True),
        Fed("b", (3, "M"), u8(0.03, 7), quantized=True),
    ]
    model = qdq_model("Add", sides, out=u8(0.01, 90))
    graph = intonnx.import_model(model)
    exe, exported = intonnx.compile(graph), intonnx.to_onnx(graph)
    for n, m in ((256, 1), (1, 256), (256, 256)):
        inputs = {
            "a": RNG.integers(0, 256, (3, n)).astype(np.uint8),
            "b": RNG.integers(0, 256, (3, m)).astype(np.uint8),
        }
        apart(exe.run(inputs), run_onnxruntime(exported, inputs, optimized=False), 0)


@pytest.mark.parametrize("op_type", ["Add", "Sub"])
def test_float16_real_values(op_type: str) -> None:
    build = Builder()
    names = []
    for name, scale in (("a", 0.02), ("b", 0.03)):
        build.feed(name, (4, 64), np.uint8)
        scale_name = build.constant(f"{name}_scale", np.float16(scale))
        zero = build.constant(f"{name}_zero", np.uint8(9))
        names.append(build.node("DequantizeLinear", [name, scale_name, zero]))
    real = build.node(op_type, names)
    out = [build.constant("y_scale", np.float16(0.04)), build.constant("y_zero", np.uint8(9))]
    build.output(build.node("QuantizeLinear", [real, *out], name="y"), np.uint8)
    inputs = {name: RNG.integers(0, 256, (4, 64)).astype(np.uint8) for name in "ab"}
    # onnxruntime has no float16 sum: it computes in float32, and where the graph lets it, it leaves
    # out the rounding of the operands to float16.
    check_model(build.model(), inputs, quanta=0, export_quanta=1, kernel=False)


# -- QLinearAdd -----------------------------------------------------------------------------------


def qlinear_inputs(case: BinaryCase, zeros: bool = True) -> list[Any]:
    inputs: list[Any] = []
    for name, side in (("a", case.a_params), ("b", case.b_params), ("", case.out)):
        codes = case.a if name == "a" else case.b
        inputs += [Fed(name, codes.shape, dtype=codes.dtype)] if name else []
        inputs += [side.scale_array, side.zero_array[()] if zeros else None]
    return inputs


@given(strategies.binary_cases())
@settings(max_examples=40)
def test_qlinear_add_imports_bit_for_bit(case: BinaryCase) -> None:
    model = qoperator_model("QLinearAdd", qlinear_inputs(case), case.a.dtype)
    check_model(model, {"a": case.a, "b": case.b}, quanta=0, literal_quanta=1)


def test_qlinear_add_without_zero_points() -> None:
    # The operator's schema allows it; onnxruntime's type inference does not.
    codes = np.arange(256).astype(np.uint8)
    case = BinaryCase(codes, codes[::-1].copy(), u8(0.02), u8(0.03), u8(0.05))
    model = qoperator_model("QLinearAdd", qlinear_inputs(case, zeros=False), np.uint8)
    model.graph.output[0].type.tensor_type.elem_type = onnx.TensorProto.UINT8
    found = intonnx.compile(intonnx.import_model(model)).run({"a": case.a, "b": case.b})["y"]
    zero = np.uint8(0)
    wanted = bigint.qlinear_add(case.a, 0.02, zero, case.b, 0.03, zero, 0.05, zero)
    np.testing.assert_array_equal(found, wanted)


def test_qlinear_add_with_a_scale_of_run_time_is_refused() -> None:
    inputs: list[Any] = [
        Fed("a", (4,), dtype=np.uint8), Fed("s", ()), np.uint8(3),
        Fed("b", (4,), dtype=np.uint8), np.float32(0.1), np.uint8(3), np.float32(1), np.uint8(0),
    ]  # fmt: skip
    model = qoperator_model("QLinearAdd", inputs, np.uint8)
    code, detail = refusal_of(model, "QLinearAdd")
    assert code == "runtime-parameters"
    assert "computed at run time" in detail


# -- refusals -------------------------------------------------------------------------------------


def test_a_float_operand_is_refused_and_nothing_is_quantized() -> None:
    for sides in ([Fed("a", (4,), u8(0.1, 3)), Fed("b", (4,))], [Fed("b", (4,)), Fed("a", (4,))]):
        code, detail = refusal_of(qdq_model("Add", sides, out=u8(0.2)), "Add")
        assert code == "input-not-quantized"
        assert "'b' arrives as float" in detail


def test_a_result_without_a_quantizer_is_refused() -> None:
    sides = [Fed("a", (4,), u8(0.1, 3)), Fed("b", (4,), u8(0.1, 3))]
    assert refusal_of(qdq_model("Add", sides), "Add")[0] == "output-not-quantized"


def test_a_result_that_is_also_read_as_float_is_refused() -> None:
    build = Builder()
    sides = [Fed("a", (4,), u8(0.1, 3)), Fed("b", (4,), u8(0.1, 3))]
    real = build.node("Add", [build.operand(side, i) for i, side in enumerate(sides)])
    build.output(build.quantize(real, u8(0.2), "y"), np.uint8)
    build.output(real, np.float32)
    assert refusal_of(build.model(), "Add")[0] == "float-result-used"


def test_a_result_with_a_scale_for_each_channel_is_refused() -> None:
    sides = [Fed("a", (2, 3), u8(0.1, 3)), Fed("b", (2, 3), u8(0.1, 3))]
    model = qdq_model("Add", sides, out=u8([0.1, 0.2, 0.3], [0, 0, 0], axis=1))
    code, detail = refusal_of(model, "Add")
    assert code == "per-axis-input"
    assert "'y' has a scale for each index of axis 1" in detail


def test_a_result_quantized_twice_gives_two_sums() -> None:
    build = Builder()
    sides = [
        Fed("a", (64,), u8(0.1, 3), quantized=True),
        Fed("b", (64,), u8(0.1, 3), quantized=True),
    ]
    real = build.node("Add", [build.operand(side, i) for i, side in enumerate(sides)])
    build.output(build.quantize(real, u8(0.2), "y"), np.uint8)
    build.output(build.quantize(real, s8(0.3, 5), "z"), np.int8)
    inputs = {name: RNG.integers(0, 256, 64).astype(np.uint8) for name in "ab"}
    check_model(build.model(), inputs, kernel=False)
