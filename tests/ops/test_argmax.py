"""qnn.argmax and qnn.argmin against onnxruntime and Python's own max and min."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import intonnx
from intonnx.ir.op import Op
from intonnx.ir.ops.argmax import ArgMax, ArgMin
from intonnx.ir.types import DType, TensorType, plain
from support import strategies
from support.models import MICROSOFT, Array, Builder, Fed, Params, s8, s16, u8, u16
from support.movers import kind, names_of
from support.wings import check_model, refusal_of

SHAPE = (3, 4, 5)
NAMES = {"ArgMax": "qnn.argmax", "ArgMin": "qnn.argmin"}


def model(op_type: str, x: Fed, *, opset: int = 21, **attributes: Any) -> Any:
    """DQ -> ArgMax, whose result is the output."""
    build = Builder(opset, "" if opset >= 21 else MICROSOFT)
    build.output(build.node(op_type, [build.operand(x, 0)], name="y", **attributes), np.int64)
    return build.model()


def few_codes(dtype: npt.DTypeLike, shape: tuple[int, ...] = SHAPE) -> Array:
    """Codes with many ties, both ends of the range among them."""
    info = np.iinfo(dtype)
    values = np.asarray([info.min, info.max, 3, 4])
    return np.random.default_rng(1).choice(values, shape).astype(dtype)


@pytest.mark.parametrize(
    ("constraint", "op", "x"),
    [
        ("C1", ArgMax(), plain(DType.F32, (3, 4))),
        ("C1", ArgMax(), plain(DType.I32, (3, 4))),
        ("C1", ArgMin(axis=1), kind((3, 4), axis=1, n=4)),
        ("C2", ArgMax(axis=2), kind((3, 4))),
        ("C2", ArgMax(), kind(None)),
        ("C3", ArgMin(axis=1), kind((3, 0))),
    ],
)
def test_arg_refuses_c1_to_c3(constraint: str, op: Op, x: TensorType) -> None:
    with pytest.raises(intonnx.TypeFailure, match=constraint):
        op.infer([x])


@pytest.mark.parametrize("op_type", NAMES)
@pytest.mark.parametrize("opset", [10, 11, 12, 13, 23])
@pytest.mark.parametrize("x", [u8(0.7, 14), s8(0.7, -128), u16(0.01, 65535), s16(0.1, 0)])
def test_indices_at_every_opset(x: Params, opset: int, op_type: str) -> None:
    for axis, keepdims, last in ((0, 1, 0), (-1, 0, 1), (1, 0, 0)):
        attributes: dict[str, int] = {"axis": axis, "keepdims": keepdims}
        if opset >= 12:
            attributes["select_last_index"] = last
        given_model = model(op_type, Fed("x", SHAPE, x, quantized=True), opset=opset, **attributes)
        graph = check_model(given_model, {"x": few_codes(x.dtype)}, quanta=0)
        assert names_of(graph) == [NAMES[op_type]]


@pytest.mark.parametrize("op_type", NAMES)
def test_a_float_input_is_quantized_first(op_type: str) -> None:
    given_model = model(op_type, Fed("x", SHAPE, s8(0.7, 14)), axis=1)
    x = np.random.default_rng(0).standard_normal(SHAPE).astype(np.float32)
    check_model(given_model, {"x": x}, quanta=0)


@settings(max_examples=30)
@given(st.data())
def test_ties_are_those_of_lists(data: st.DataObject) -> None:
    x, last = data.draw(strategies.params(wide=True)), data.draw(st.booleans())
    codes = data.draw(strategies.codes(x.dtype, (3, 6)))
    for op_type, best in (("ArgMax", max), ("ArgMin", min)):
        graph = intonnx.import_model(
            model(op_type, Fed("x", (3, 6), x, quantized=True), axis=1, keepdims=0,
                  select_last_index=int(last))
        )  # fmt: skip
        found = intonnx.compile(graph).run({"x": codes})["y"]
        for row, index in zip(codes.tolist(), found, strict=True):
            places = [i for i, code in enumerate(row) if code == best(row)]
            assert index == places[-1 if last else 0]


def test_codes_without_parameters() -> None:
    build = Builder()
    build.output(build.node("ArgMax", [build.feed("x", SHAPE, np.uint8)], name="y"), np.int64)
    given_model = build.model()
    graph = check_model(given_model, {"x": few_codes(np.uint8)}, quanta=0)
    assert names_of(graph) == ["qnn.argmax"]
    assert intonnx.parse(str(graph), weights=graph.constants) == graph


@pytest.mark.parametrize(
    ("x", "code"),
    [
        (Fed("x", (3, 4)), "input-not-quantized"),
        (Fed("x", (3, 4), u8([0.1] * 3, [0] * 3, axis=0)), "per-axis-input"),
    ],
)
def test_refusals(x: Fed, code: str) -> None:
    assert refusal_of(model("ArgMax", x), "ArgMax")[0] == code


def test_codes_that_share_a_value_are_refused() -> None:
    build = Builder()
    codes = build.feed("x", (3, 4), np.uint16)
    scale = build.constant("scale", np.float16(0.1))
    real = build.node(
        "DequantizeLinear", [codes, scale, build.constant("zero_point", np.uint16(0))]
    )
    build.output(build.node("ArgMax", [real], name="y"), np.int64)
    code, detail = refusal_of(build.model(), "ArgMax")
    assert code == "unsupported-type"
    assert "f16" in detail
