"""qnn.concatenate against the plain model, onnxruntime, and the literal QDQ model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import intonnx
from intonnx.ir.errors import TypeFailure
from intonnx.ir.ops.concatenate import Concatenate
from intonnx.ir.ops.conv import Conv2d
from intonnx.ir.ops.quantize import Requantize
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
    run_inputs,
    s8,
    s16,
    u8,
    u16,
)
from support.runtime import run_onnxruntime
from support.wings import apart, check_model, refusal_of

RNG = np.random.default_rng(0)


def params(storage: DType = DType.U8, scale: float = 0.5) -> QuantParams:
    return QuantParams(storage=storage, scale=scale, zero_point=1)


def codes_type(*shape: int | str) -> TensorType:
    return quantized(params(), shape)


@dataclass(frozen=True)
class Case:
    """Code arrays that join along `axis`, each with its own parameters."""

    arrays: list[Array]
    sides: list[Params]
    out: Params
    axis: int


@st.composite
def cases(draw: st.DrawFn, *, wide: bool = False, one_storage: bool = True) -> Case:
    storage = draw(strategies.storages(wide=wide))
    count, axis = draw(st.integers(1, 4)), draw(st.integers(0, 2))
    ratios = draw(strategies.scale_ratios(count + 1, 1e-2, 10.0))
    sides, arrays = [], []
    out = Params(storage, ratios[0], draw(strategies.zero_points(storage)))
    for ratio in ratios[1:]:
        mine = storage if one_storage else draw(strategies.storages(wide=wide))
        zero = draw(strategies.zero_points(mine))
        equal = draw(st.booleans()) and mine is storage
        sides.append(out if equal else Params(mine, ratio, zero))
        shape = [2, 3, 4]
        shape[axis] = draw(st.integers(1, 3))
        arrays.append(draw(strategies.codes(mine, tuple(shape))))
    return Case(arrays, sides, out, axis)


def fed(case: Case, *, quantized: bool = True) -> tuple[list[Fed], dict[str, Array]]:
    names = [f"x{i}" for i in range(len(case.arrays))]
    inputs = [
        Fed(name, array.shape, side, quantized=quantized)
        for name, array, side in zip(names, case.arrays, case.sides, strict=True)
    ]
    return inputs, dict(zip(names, case.arrays, strict=True))


# -- constraints ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("constraint", "operands", "axis", "out"),
    [
        ("C1", [], 0, params()),
        ("C1", [plain(DType.U8, [2])], 0, params()),
        ("C1", [plain(DType.F32, [2])], 0, None),
        ("C1", [codes_type(2)], 0, None),
        ("C1", [plain(DType.U8, [2]), plain(DType.I8, [2])], 0, None),
        ("C1", [quantized(params(DType.I32), [2])], 0, params()),
        ("C2", [codes_type(2, 3)], 2, params()),
        ("C2", [codes_type(2, 3)], -1, params()),
        ("C3", [codes_type(2, 3), codes_type(2)], 0, params()),
        ("C3", [codes_type(2, 3), codes_type(2, 4)], 0, params()),
    ],
)
def test_constraints(
    constraint: str, operands: list[TensorType], axis: int, out: QuantParams | None
) -> None:
    with pytest.raises(TypeFailure) as failure:
        Concatenate(axis=axis, out=out).infer(operands)
    assert failure.value.constraint == constraint


def test_c1_the_result_is_per_tensor() -> None:
    per_axis = QuantParams(storage=DType.U8, scale=[1, 2], zero_point=[0, 0], axis=0)
    with pytest.raises(TypeFailure, match="C1"):
        Concatenate(axis=1, out=per_axis).infer([codes_type(2, 3)])


def test_c3_symbols_meet_sizes() -> None:
    (kind,) = Concatenate(axis=1, out=params()).infer(
        [codes_type("N", 3, "H"), codes_type("N", "C", 5)]
    )
    assert kind.shape == ("N", "?", 5)


# -- arithmetic -----------------------------------------------------------------------------------


@settings(max_examples=40)
@given(cases())
def test_qlinear_concat_is_onnxruntime_and_the_plain_model(case: Case) -> None:
    triples = [
        item
        for i, (array, side) in enumerate(zip(case.arrays, case.sides, strict=True))
        for item in (Fed(f"x{i}", array.shape, dtype=side.dtype), side.scale_array, side.zero_array)
    ]
    model = qoperator_model(
        "QLinearConcat",
        [case.out.scale_array, case.out.zero_array, *triples],
        case.out.dtype,
        attrs={"axis": case.axis - 3},
    )
    _, inputs = fed(case)
    graph = check_model(model, inputs, quanta=0)
    # Of one input it is a change of parameters.
    joined = Concatenate if len(case.arrays) > 1 else Requantize
    assert [type(node.op) for node in graph.nodes][-1] is joined
    sides = [
        (array, side.scale_array, side.zero_array)
        for array, side in zip(case.arrays, case.sides, strict=True)
    ]
    wanted = bigint.qlinear_concat(case.out.scale_array, case.out.zero_array, sides, case.axis)
    apart(intonnx.compile(graph).run(inputs), {"y": wanted}, 0)


@settings(max_examples=40)
@given(cases(wide=True, one_storage=False), st.booleans())
def test_dq_concat_q_is_exact_for_every_storage(case: Case, quantized: bool) -> None:
    sides, inputs = fed(case, quantized=quantized)
    model = qdq_model("Concat", sides, out=case.out, attrs={"axis": case.axis})
    feeds = inputs if quantized else run_inputs(model)
    graph = check_model(model, feeds, quanta=0, kernel=False)
    assert sum(isinstance(node.op, Concatenate) for node in graph.nodes) == 1


def test_float_constants_take_the_parameters_of_the_result() -> None:
    constant = RNG.standard_normal((2, 3, 2)).astype(np.float32)
    held = Held(RNG.integers(-128, 128, (2, 3, 1)), s8(0.013, 7))
    model = qdq_model(
        "Concat",
        [Fed("x", (2, 3, 4), s8(0.02, -3)), Held(constant), held],
        out=s8(0.03, 5),
        attrs={"axis": 2},
    )
    graph = check_model(model, run_inputs(model), quanta=0)
    codes = graph.constants[graph.nodes[-1].operands[1]]
    np.testing.assert_array_equal(codes, bigint.quantize(constant, np.float32(0.03), np.int8(5)))


@pytest.mark.parametrize("opset", [10, 11, 13, 21])
def test_every_opset(opset: int) -> None:
    model = qdq_model(
        "Concat",
        [Fed("x", (2, 3), u8(0.02, 114)), Fed("z", (2, 1), u8(0.05, 0), quantized=True)],
        out=u8(0.03, 3),
        attrs={"axis": -1 if opset > 10 else 1},
        opset=opset,
    )
    check_model(model, run_inputs(model), quanta=0)


def test_one_quantizer_for_each_reader() -> None:
    build = Builder()
    x = build.operand(Fed("x", (2, 3), u8(0.02, 114)), 0)
    z = build.operand(Fed("z", (2, 3), u8(0.04, 1)), 1)
    joined = build.node("Concat", [x, z, x], axis=1)
    build.output(build.quantize(joined, u8(0.03, 3), "y"), np.uint8)
    build.output(build.quantize(joined, s16(0.001, 3), "y16"), np.int16)
    model = build.model()
    graph = check_model(model, run_inputs(model), quanta=0, kernel=False)
    assert sum(isinstance(node.op, Concatenate) for node in graph.nodes) == 2


def test_the_quantizer_reaches_what_made_the_inputs() -> None:
    build = Builder()
    x = build.operand(Fed("x", (1, 2, 5, 5), u8(0.02, 114)), 0)
    parts = []
    for i in range(2):
        codes = RNG.integers(-127, 128, (3, 2, 3, 3)).astype(np.int8)
        w = build.dequantize(build.constant(f"w{i}", codes), s8(0.01 + i / 100))
        conv = build.node("Conv", [x, w], pads=[1, 1, 1, 1])
        parts.append(build.node("Relu", [conv]))
    build.output(build.quantize(build.node("Concat", parts, axis=1), u8(0.1, 0), "y"), np.uint8)
    model = build.model()
    graph = check_model(model, run_inputs(model), literal_quanta=1)
    kinds = [type(node.op) for node in graph.nodes]
    assert kinds.count(Conv2d) == kinds.count(Requantize) == 2


def test_equal_parameters_need_no_quantizer() -> None:
    build = Builder()
    p = u16(0.02, 114)
    x, z = (build.operand(Fed(name, (2, 3), p), i) for i, name in enumerate("xz"))
    zero = build.constant("zero", np.zeros((2, 1), np.float32))
    build.output(build.node("Concat", [x, zero, z], axis=1, name="y"), np.float32)
    model = build.model()
    check_model(model, run_inputs(model), kernel=False)


def test_constants_alone_are_joined_at_import() -> None:
    build = Builder()
    x = build.operand(Fed("x", (1, 2, 5, 5), u8(0.02, 114)), 0)
    parts = [
        build.operand(Held(RNG.integers(-127, 128, (i, 2, 3, 3)), s8(0.01)), i) for i in (1, 2)
    ]
    w = build.node("Concat", parts, axis=0)
    build.output(build.quantize(build.node("Conv", [x, w]), u8(0.1, 5), "y"), np.uint8)
    model = build.model()
    graph = check_model(model, run_inputs(model), literal_quanta=1)
    assert not any(isinstance(node.op, Concatenate) for node in graph.nodes)


# -- codes without quantizers ---------------------------------------------------------------------


@pytest.mark.parametrize("second", [u8(0.02, 114), u8(0.5, 3)])
def test_codes_between_quantizer_and_dequantizer(second: Params) -> None:
    build = Builder()
    first = u8(0.02, 114)
    parts = []
    for name, side in (("x", first), ("z", second)):
        parts.append(build.quantize(build.feed(name, (2, 3), np.float32), side))
    joined = build.node("Concat", parts, axis=0)
    build.output(build.dequantize(joined, first, "y"), np.float32)
    model = build.model()
    check_model(model, run_inputs(model))


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint16, np.int16])
def test_plain_integers(dtype: type) -> None:
    build = Builder()
    names = [build.feed(name, (2, 3), dtype) for name in "xz"]
    build.output(build.node("Concat", names, axis=1, name="y"), dtype)
    model = build.model()
    graph = check_model(model, run_inputs(model), quanta=0)
    assert intonnx.parse(str(graph)).nodes == graph.nodes


# -- refusals -------------------------------------------------------------------------------------


def test_refuses_without_parameters_of_the_result() -> None:
    sides = [Fed("x", (2, 3), u8(0.02, 114)), Fed("z", (2, 3), u8(0.05))]
    code, detail = refusal_of(qdq_model("Concat", sides, attrs={"axis": 0}), "Concat")
    assert code == "output-not-quantized"
    assert "x_q" in detail


def test_refuses_a_float_input_without_a_quantizer() -> None:
    sides = [Fed("x", (2, 3), u8(0.02, 114)), Fed("z", (2, 3))]
    code, _ = refusal_of(qdq_model("Concat", sides, attrs={"axis": 0}), "Concat")
    assert code == "input-not-quantized"


def test_refuses_a_constant_off_the_grid_without_a_quantizer() -> None:
    sides = [Fed("x", (2, 3), u8(0.02, 114)), Held(np.full((1, 3), 0.011, np.float32))]
    code, detail = refusal_of(qdq_model("Concat", sides, attrs={"axis": 0}), "Concat")
    assert code == "output-not-quantized"
    assert "multiple" in detail


def test_refuses_runtime_parameters() -> None:
    model = qoperator_model(
        "QLinearConcat",
        [Fed("s", (), dtype=np.float32), np.uint8(0), Fed("x", (2,), dtype=np.uint8),
         np.float32(1), np.uint8(0)],
        np.uint8, attrs={"axis": 0},
    )  # fmt: skip
    assert refusal_of(model, "QLinearConcat")[0] == "runtime-parameters"


def test_standard_runtime_has_no_contrib_operators() -> None:
    sides = [Fed("x", (2, 3), u8(0.02, 114)), Fed("z", (2, 3), u8(0.05))]
    model = qdq_model("Concat", sides, out=u8(0.03), attrs={"axis": 0})
    exported = intonnx.to_onnx(intonnx.import_model(model), runtime="standard")
    assert {node.domain for node in exported.graph.node} == {""}
    inputs = run_inputs(model)
    wanted = run_onnxruntime(model, inputs, optimized=False)
    apart(run_onnxruntime(exported, inputs, optimized=False), wanted, 0)


def test_integer_products_of_joined_codes_import_again() -> None:
    """A Concat of quantized codes gets parameters; what reads it as plain integers still does."""
    build = Builder(13)
    x = build.quantize(build.feed("x", (2, 3), np.float32), u8(0.05, 100), "xq")
    joined = build.node("Concat", [x, x], axis=1)
    weights = build.constant("w", np.arange(-6, 6, dtype=np.int8).reshape(6, 2))
    zero = build.constant("z", np.uint8(100))
    build.output(build.node("MatMulInteger", [joined, weights, zero], name="y"), np.int32)
    model = build.model()
    feeds = run_inputs(model)
    ours = intonnx.compile(intonnx.import_model(model)).run(feeds)["y"]
    np.testing.assert_array_equal(ours, run_onnxruntime(model, feeds, optimized=False)["y"])
