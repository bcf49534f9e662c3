"""qnn.cumsum against onnxruntime and sums of Python integers."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import intonnx
from intonnx.ir.op import Op
from intonnx.ir.ops.cumsum import CumSum
from intonnx.ir.types import DType, plain
from support import bigint_linear, strategies
from support.models import MICROSOFT, Fed, Held, Params, qdq_model, run_inputs, s8, s16, u8, u16
from support.movers import kind, names_of
from support.runtime import run_onnxruntime
from support.wings import apart, check_model, refusal_of

SHAPE = (3, 4, 5)


def model(x: Fed, out: Params | None, axis: Any = 1, *, opset: int = 21, **attributes: Any) -> Any:
    domain = "" if opset >= 21 else MICROSOFT
    inputs = [x, Held(np.asarray(axis, np.int64))]
    return qdq_model("CumSum", inputs, out=out, attrs=attributes, opset=opset, qdq_domain=domain)


@pytest.mark.parametrize(
    ("constraint", "op", "x"),
    [
        ("C1", CumSum(axis=0), plain(DType.U8, (3, 4))),
        ("C1", CumSum(axis=0), kind((3, 4), axis=1, n=4)),
        ("C2", CumSum(axis=2), kind((3, 4))),
        ("C2", CumSum(axis=0), kind(None)),
    ],
)
def test_cumsum_refuses_c1_and_c2(constraint: str, op: Op, x: Any) -> None:
    with pytest.raises(intonnx.TypeFailure, match=constraint):
        op.infer([x])


@pytest.mark.parametrize("opset", [11, 14, 21])
@pytest.mark.parametrize(
    ("x", "y"),
    [
        (u8(0.02, 114), u8(0.05, 9)),
        (s8(0.3, -128), s8(2.0, 100)),
        (u16(2e-4, 30000), s16(3e-4, 7)),
        (u8(0.1, 255), s8(0.2, -5)),
    ],
)
@pytest.mark.parametrize("exclusive", [0, 1])
@pytest.mark.parametrize("reverse", [0, 1])
def test_cumsum(x: Params, y: Params, exclusive: int, reverse: int, opset: int) -> None:
    for axis, quantized in ((1, True), ([-1], False)):
        given_model = model(
            Fed("x", SHAPE, x, quantized=quantized), y, axis, opset=opset,
            exclusive=exclusive, reverse=reverse,
        )  # fmt: skip
        graph = check_model(given_model, run_inputs(given_model), literal_quanta=1)
        assert names_of(graph) == ["qnn.cumsum", "qnn.requantize"]


@settings(max_examples=30)
@given(st.data())
def test_sums_are_those_of_python_integers(data: st.DataObject) -> None:
    x, y = data.draw(strategies.params(wide=True)), data.draw(strategies.params(wide=True))
    codes = data.draw(strategies.codes(x.dtype, (2, data.draw(st.integers(1, 30)))))
    graph = intonnx.import_model(model(Fed("x", codes.shape, x, quantized=True), y))
    found = intonnx.compile(graph).run({"x": codes})["y"]
    zero = int(x.zero_array)
    sums = [list(accumulate(int(code) - zero for code in row)) for row in codes]
    k = np.float32(x.scale_array / y.scale_array)
    np.testing.assert_array_equal(
        found, bigint_linear.requantize(np.asarray(sums), k, y.zero_array)
    )


def test_sums_beyond_32_bits() -> None:
    given_model = model(Fed("x", (1, 70000), u16(1e-5, 0), quantized=True), u8(0.2, 0))
    codes = np.full((1, 70000), 65535, np.uint16)
    check_model(given_model, {"x": codes}, literal_quanta=1, export_quanta=1)


def test_how_it_is_written() -> None:
    graph = intonnx.import_model(model(Fed("x", SHAPE, u8(0.02, 114), quantized=True), None))
    assert intonnx.parse(str(graph), weights=graph.constants) == graph
    written = [node.op_type for node in intonnx.to_onnx(graph).graph.node]
    assert written[:3] == ["Cast", "Sub", "CumSum"]
    literal = [node.op_type for node in intonnx.to_onnx(graph, form="qdq").graph.node]
    assert literal[:2] == ["DequantizeLinear", "CumSum"]


def test_symbolic_and_empty_batches() -> None:
    given_model = model(Fed("x", ("n", 7), s8(0.05, 9), quantized=True), s8(0.1, 3))
    executable = intonnx.compile(intonnx.import_model(given_model))
    for batch in (0, 1, 5):
        codes = np.random.default_rng(batch).integers(-128, 128, (batch, 7)).astype(np.int8)
        wanted = run_onnxruntime(given_model, {"x": codes}, optimized=False)
        apart(executable.run({"x": codes}), wanted, 1)


def test_refusals() -> None:
    assert refusal_of(model(Fed("x", (3, 4)), u8(0.1)), "CumSum")[0] == "input-not-quantized"
    per_axis = u8([0.1] * 3, [0] * 3, axis=0)
    assert refusal_of(model(Fed("x", (3, 4), per_axis), None), "CumSum")[0] == "per-axis-input"
    inputs = [Fed("x", (3, 4), u8(0.1), quantized=True), Fed("axis", (), dtype=np.int64)]
    code, detail = refusal_of(qdq_model("CumSum", inputs, out=u8(0.1)), "CumSum")
    assert code == "runtime-constant"
    assert "'axis'" in detail
