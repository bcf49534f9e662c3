"""qnn.pad against the plain model and onnxruntime; DQ -> Pad -> Q is integer to the last code."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import intonnx
from intonnx.ir.errors import TypeFailure
from intonnx.ir.graph import Graph
from intonnx.ir.ops.pad import Pad, PadMode
from intonnx.ir.ops.quantize import Requantize
from intonnx.ir.types import DType, QuantParams, TensorType, plain, quantized
from support import bigint, strategies
from support.models import (
    Array,
    Builder,
    Fed,
    Held,
    Operand,
    Params,
    qdq_model,
    run_inputs,
    s8,
    s16,
    u8,
    u16,
)
from support.runtime import run_onnxruntime
from support.wings import apart, check_model, refusal_of

U8 = QuantParams(storage=DType.U8, scale=0.5, zero_point=3)
GOLDEN = Path(__file__).parent.parent / "golden"


def kinds_of(graph: Graph) -> list[str]:
    return [node.op.name for node in graph.nodes]


def amounts(*pads: int) -> Held:
    return Held(np.array(pads, np.int64))


# -- constraints ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("constraint", "x", "before", "after", "mode", "fill"),
    [
        ("C1", quantized(U8, [2, 3]), (1,), (1,), "constant", 3),
        ("C1", quantized(U8, None), (1,), (1,), "constant", 3),
        ("C2", quantized(U8, [3]), (1,), (1,), "constant", None),
        ("C2", quantized(U8, [3]), (1,), (1,), "edge", 3),
        ("C2", quantized(U8, [3]), (1,), (1,), "constant", 256),
        ("C2", quantized(U8, [3]), (1,), (1,), "constant", -1),
        ("C4", quantized(U8, [3]), (-2,), (-2,), "constant", 3),
        ("C4", quantized(U8, [3]), (3,), (0,), "reflect", None),
        ("C4", quantized(U8, [3]), (-1,), (2,), "reflect", None),
        ("C4", quantized(U8, [3]), (-3,), (1,), "edge", None),
        ("C4", quantized(U8, [0]), (0,), (1,), "wrap", None),
        ("C5", plain(DType.F32, [3]), (1,), (1,), "edge", None),
    ],
)
def test_constraints(
    constraint: str,
    x: TensorType,
    before: tuple[int, ...],
    after: tuple[int, ...],
    mode: PadMode,
    fill: int | None,
) -> None:
    with pytest.raises(TypeFailure) as failure:
        Pad(before=before, after=after, mode=mode, fill=fill).infer([x])
    assert failure.value.constraint == constraint


def test_c3_refuses_the_quantized_axis() -> None:
    per_axis = QuantParams(storage=DType.U8, scale=[1, 2], zero_point=[0, 0], axis=0)
    with pytest.raises(TypeFailure, match="C3"):
        Pad(before=(0, 0), after=(1, 0), fill=0).infer([quantized(per_axis, [2, 3])])
    (kind,) = Pad(before=(0, 2), after=(0, 0), fill=0).infer([quantized(per_axis, [2, "N"])])
    assert kind.shape == (2, "?")


# -- the question that this project began with ----------------------------------------------------


def pad_model(side: Params, out: Params, *, fed_codes: bool, fill: Any = 0.25) -> onnx.ModelProto:
    x = Fed("x", (1, 2, 3, 4), side, quantized=fed_codes)
    operands: list[Operand] = [x, amounts(0, 0, 1, 2, 0, 0, 1, -1), Held(np.float32(fill))]
    return qdq_model("Pad", operands, out=out)


SIDES = [
    (u8(0.02, 114), u8(0.03, 3)),
    (s8(0.02, -7), s8(0.05, 100)),
    (u16(3e-4, 9), u16(2e-4, 0)),
    (s16(1e-3, -5), s16(2e-3, 32767)),
    (u8(0.02, 114), s8(0.03, 3)),
    (s16(1e-3, 0), u8(0.1, 0)),
]


@pytest.mark.parametrize(("side", "out"), SIDES)
@pytest.mark.parametrize("fed_codes", [False, True])
def test_dq_pad_q_with_unequal_scales_is_one_pad_and_one_requantize(
    side: Params, out: Params, fed_codes: bool
) -> None:
    model = pad_model(side, out, fed_codes=fed_codes)
    # onnxruntime merges Q -> DQ -> Q -> DQ wrongly when it optimizes; codes that are fed it keeps.
    graph = check_model(model, run_inputs(model), quanta=0, kernel=fed_codes)
    first = "qnn.storage_cast" if fed_codes else "qnn.quantize"
    assert kinds_of(graph) == [first, "qnn.requantize", "qnn.pad"]


@pytest.mark.parametrize("side", [u8(0.02, 114), s8(0.02, -128), u16(3e-4, 65535), s16(1e-3, -5)])
@pytest.mark.parametrize("fed_codes", [False, True])
@pytest.mark.parametrize("fill", [0.0, 0.013, -1e9, np.inf, np.nan])
def test_dq_pad_q_with_equal_scales_is_one_pad(side: Params, fed_codes: bool, fill: float) -> None:
    model = pad_model(side, side, fed_codes=fed_codes, fill=fill)
    graph = check_model(model, run_inputs(model), quanta=0)
    assert kinds_of(graph) == ["qnn.storage_cast" if fed_codes else "qnn.quantize", "qnn.pad"]


@pytest.mark.parametrize("fed_codes", [False, True])
def test_the_text_of_dq_pad_q(fed_codes: bool) -> None:
    model = pad_model(u8(0.02, 114), u8(0.03, 3), fed_codes=fed_codes)
    name = "pad_unequal_scales_codes.txt" if fed_codes else "pad_unequal_scales.txt"
    graph = intonnx.import_model(model)
    assert str(graph) == (GOLDEN / name).read_text()
    assert intonnx.parse(str(graph)).nodes == graph.nodes


# -- any pad --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """Codes [2, 3, 5], amounts as in ONNX, and the padding value."""

    x: Array
    side: Params
    out: Params
    pads: list[int]
    mode: PadMode
    fill: float


@st.composite
def cases(draw: st.DrawFn) -> Case:
    storage = draw(strategies.storages(wide=True))
    first, second = draw(strategies.scale_ratios(2, 1e-2, 10.0))
    shape, mode = (2, 3, 5), draw(st.sampled_from(["constant", "reflect", "edge", "wrap"]))
    before, after = [], []
    for size in shape:
        b, a = draw(st.integers(-1, 3)), draw(st.integers(-1, 3))
        left = size + min(0, b) + min(0, a)
        if mode != "constant" and not left:
            b = a = 0  # onnxruntime pads nothing empty, by whatever amount
        elif mode == "reflect":
            b, a = min(b, left - 1), min(a, left - 1)
        before.append(b)
        after.append(a)
    side = Params(storage, first, draw(strategies.zero_points(storage)))
    other = Params(storage, second, draw(strategies.zero_points(storage)))
    fill = draw(st.sampled_from([0.0, 0.5, first, -second]) | st.floats(-1e3, 1e3))
    out = draw(st.sampled_from([side, other]))
    return Case(draw(strategies.codes(storage, shape)), side, out, before + after, mode, fill)


@settings(max_examples=80)
@given(cases(), st.booleans())
def test_pad_is_onnxruntime_unoptimized_to_the_last_code(case: Case, fed_codes: bool) -> None:
    fill = Held(np.float32(case.fill)) if case.mode == "constant" else None
    x = Fed("x", case.x.shape, case.side, quantized=fed_codes)
    model = qdq_model(
        "Pad", [x, amounts(*case.pads), fill], out=case.out, attrs={"mode": case.mode}
    )
    inputs = {"x": case.x} if fed_codes else run_inputs(model)
    graph = check_model(model, inputs, quanta=0, kernel=fed_codes)
    assert sum(isinstance(node.op, Pad) for node in graph.nodes) == 1
    assert sum(isinstance(node.op, Requantize) for node in graph.nodes) <= 1


@settings(max_examples=40)
@given(cases())
def test_pad_on_codes_is_the_plain_model(case: Case) -> None:
    build = Builder(19)
    x = build.feed("x", case.x.shape, case.x.dtype)
    low, high = np.iinfo(case.x.dtype).min, np.iinfo(case.x.dtype).max
    fill = int(np.clip(case.fill, low, high))
    value = build.constant("fill", case.x.dtype.type(fill)) if case.mode == "constant" else ""
    names = [x, build.constant("pads", np.array(case.pads, np.int64)), value]
    build.output(build.node("Pad", names, name="y", mode=case.mode), case.x.dtype)
    graph = intonnx.import_model(build.model())
    assert kinds_of(graph) == ["qnn.pad"]
    wanted = {"y": bigint.pad(case.x, case.pads, fill, case.mode)}
    apart(intonnx.compile(graph).run({"x": case.x}), wanted, 0)
    # onnxruntime pads no 16-bit integers: the export must widen them.
    for optimized in (False, True):
        exported = intonnx.to_onnx(graph)
        apart(run_onnxruntime(exported, {"x": case.x}, optimized=optimized), wanted, 0)


# -- how every opset says it ----------------------------------------------------------------------


@pytest.mark.parametrize("opset", [10, 11, 13, 18, 19, 21, 23])
@pytest.mark.parametrize("mode", ["constant", "reflect", "edge"])
def test_every_opset(opset: int, mode: str) -> None:
    x = Fed("x", (1, 2, 3, 4), u8(0.02, 114))
    attrs: dict[str, Any] = {"mode": mode}
    pads = [0, 0, 1, 2, 0, 0, 1, 1]
    operands: list[Operand] = [x]
    if opset < 11:
        attrs |= {"pads": pads} | ({"value": 0.7} if mode == "constant" else {})
    else:
        operands += [amounts(*pads), Held(np.float32(0.7)) if mode == "constant" else None]
    model = qdq_model("Pad", operands, out=u8(0.02, 114), attrs=attrs, opset=opset)
    graph = check_model(model, run_inputs(model), quanta=0)
    assert kinds_of(graph) == ["qnn.quantize", "qnn.pad"]


@pytest.mark.parametrize("axes", [[-1, 1], [2], [3, 2]])
def test_axes_since_opset_18(axes: list[int]) -> None:
    pads = amounts(*range(1, 2 * len(axes) + 1))
    fill = Held(35, u8(0.02, 0))
    x = Fed("x", (1, 2, 3, 4), s8(0.02, 14))
    held = Held(np.array(axes, np.int64))
    model = qdq_model("Pad", [x, pads, fill, held], out=s8(0.02, 14), opset=18)
    check_model(model, run_inputs(model), quanta=0)


@pytest.mark.parametrize("fill", [Held(77, u8(0.01, 3)), Held(np.array([0.3], np.float32)), None])
def test_the_constant_through_a_dequantizer_of_rank_1_or_absent(fill: Operand) -> None:
    x = Fed("x", (3, 4), s8(0.02, 14))
    model = qdq_model("Pad", [x, amounts(1, 0, 2, 1), fill], out=s8(0.03, 1), opset=13)
    check_model(model, run_inputs(model), quanta=0, kernel=False)


# -- without a quantizer behind it ----------------------------------------------------------------


@pytest.mark.parametrize("fill", [None, 0.5, -0.25])
def test_a_constant_on_the_grid_needs_no_quantizer(fill: float | None) -> None:
    build = Builder()
    x = build.operand(Fed("x", (3, 4), s8(0.25, 14)), 0)
    names = [x, build.constant("p", np.array([1, 0, 2, 1]))]
    names += [] if fill is None else [build.constant("fill", np.float32(fill))]
    build.output(build.node("Pad", names, name="y"), np.float32)
    model = build.model()
    graph = check_model(model, run_inputs(model))
    assert kinds_of(graph) == ["qnn.quantize", "qnn.pad", "qnn.dequantize"]


@pytest.mark.parametrize("fill", [0.3, 1e6, -np.inf])
def test_refuses_a_constant_off_the_grid_without_a_quantizer(fill: float) -> None:
    operands = [Fed("x", (3, 4), s8(0.25, 14)), amounts(1, 0, 2, 1), Held(np.float32(fill))]
    code, detail = refusal_of(qdq_model("Pad", operands), "Pad")
    assert code == "output-not-quantized"
    assert str(float(np.float32(fill))) in detail


@pytest.mark.parametrize("dtype", [np.uint8, np.int16])
def test_scales_for_each_channel_beside_the_padded_axis(dtype: type) -> None:
    build = Builder()
    params = Params(dtype, np.array([0.1, 0.2], np.float32), np.array([7, 7]), 0)
    x = build.operand(Fed("x", (2, 4), params), 0)
    pads = build.constant("p", np.array([0, 1, 0, 2]))
    build.output(build.node("Pad", [x, pads], name="y"), np.float32)
    model = build.model()
    graph = check_model(model, run_inputs(model))
    assert kinds_of(graph) == ["qnn.quantize", "qnn.pad", "qnn.dequantize"]


# -- refusals -------------------------------------------------------------------------------------


def test_refuses_channels_whose_zeros_have_other_codes() -> None:
    x = Fed("x", (2, 4), u8([0.1, 0.2], [1, 2], axis=0))
    assert refusal_of(qdq_model("Pad", [x, amounts(0, 1, 0, 1)]), "Pad")[0] == "per-axis-input"


@pytest.mark.parametrize("which", [1, 2, 3])
def test_refuses_what_is_computed_at_run_time(which: int) -> None:
    operands: list[Operand] = [
        Fed("x", (3, 4), u8(0.1)), amounts(1, 1), Held(np.float32(0)), amounts(1),
    ]  # fmt: skip
    operands[which] = Fed("n", () if which == 2 else (3 - which + 1 - (which == 3),),
                          dtype=np.float32 if which == 2 else np.int64)  # fmt: skip
    assert refusal_of(qdq_model("Pad", operands, out=u8(0.1)), "Pad")[0] == "runtime-constant"


def test_refuses_a_float_input() -> None:
    model = qdq_model("Pad", [Fed("x", (3, 4)), amounts(1, 0, 2, 1)])
    assert refusal_of(model, "Pad")[0] == "input-not-quantized"


def test_refuses_to_reflect_more_than_there_is() -> None:
    operands = [Fed("x", (3,), u8(0.1)), amounts(3, 0)]
    code, detail = refusal_of(qdq_model("Pad", operands, attrs={"mode": "reflect"}), "Pad")
    assert code == "unsupported-attribute"
    assert "C4" in detail
