"""qnn.top_k against onnxruntime and Python's own sorting."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import intonnx
from intonnx.ir.op import Op
from intonnx.ir.ops.top_k import TopK
from intonnx.ir.types import DType, plain
from support import strategies
from support.models import (
    MICROSOFT,
    Array,
    Builder,
    Fed,
    Held,
    Params,
    run_inputs,
    s8,
    s16,
    u8,
    u16,
)
from support.movers import kind, names_of
from support.runtime import run_onnxruntime
from support.wings import check_model, refusal_of

SHAPE = (3, 4, 5)
COUNTED = plain(DType.I64, (1,))


def model(
    x: Fed, out: Params | None, k: int | None = 3, *, opset: int = 21, **attributes: Any
) -> Any:
    """DQ -> TopK, the values quantized when there is `out`; `k` None is a graph input."""
    build = Builder(opset, "" if opset >= 21 else MICROSOFT)
    count = build.feed("k", (1,), np.int64) if k is None else build.constant("k", np.asarray([k]))
    operands = [build.operand(x, 0), count]
    values = build.node("TopK", operands, name="values", results=2, **attributes)
    if out is None:
        build.output(build.node("Identity", [values], name="y"), np.float32)
    else:
        build.output(build.quantize(values, out, "y"), out.dtype)
    build.output("values_1", np.int64)
    return build.model()


def few_codes(dtype: Any, shape: tuple[int, ...] = SHAPE) -> Array:
    """Codes with many ties, both ends of the range among them."""
    info = np.iinfo(dtype)
    values = np.asarray([info.min, info.max, 3, 4])
    return np.random.default_rng(1).choice(values, shape).astype(dtype)


@pytest.mark.parametrize(
    ("constraint", "op", "operands"),
    [
        ("C1", TopK(k=1), [plain(DType.F32, (3, 4))]),
        ("C1", TopK(k=1), [plain(DType.I32, (3, 4))]),
        ("C1", TopK(k=1), [kind((3, 4), axis=0, n=3)]),
        ("C2", TopK(k=1, axis=2), [kind((3, 4))]),
        ("C2", TopK(k=1), [kind(None)]),
        ("C3", TopK(k=5), [kind((3, 4))]),
        ("C3", TopK(k=-1), [kind((3, "n"))]),
        ("C3", TopK(), [kind((3, 4))]),
        ("C3", TopK(k=1), [kind((3, 4)), COUNTED]),
    ],
)
def test_top_k_refuses_c1_to_c3(constraint: str, op: Op, operands: Any) -> None:
    with pytest.raises(intonnx.TypeFailure, match=constraint):
        op.infer(operands)


def test_shapes() -> None:
    assert [t.shape for t in TopK(k=2, axis=0).infer([kind(("n", 4))])] == [(2, 4), (2, 4)]
    assert [t.shape for t in TopK().infer([kind((3, 4)), COUNTED])] == [(3, "?"), (3, "?")]


@pytest.mark.parametrize("opset", [10, 11, 13, 23])
@pytest.mark.parametrize("x", [u8(0.7, 14), s8(0.7, -128), u16(0.01, 65535), s16(0.1, 0)])
def test_values_and_indices_at_every_opset(x: Params, opset: int) -> None:
    other = Params(x.dtype, x.scale * 2, 3)
    for axis, largest, out in zip((1, -1, -1), (0, 1, 0), (None, x, other), strict=True):
        attributes = {"axis": axis} if opset < 11 else {"axis": axis, "largest": largest}
        given_model = model(Fed("x", SHAPE, x, quantized=True), out, opset=opset, **attributes)
        graph = check_model(given_model, {"x": few_codes(x.dtype)}, quanta=0)
        assert names_of(graph)[0] == "qnn.top_k"


def test_a_float_input_is_quantized_first() -> None:
    given_model = model(Fed("x", SHAPE, s8(0.7, 14)), s8(0.7, 14))
    graph = check_model(given_model, run_inputs(given_model), quanta=0)
    assert [node.op.name for node in graph.nodes] == ["qnn.quantize", "qnn.top_k"]


@settings(max_examples=40)
@given(st.data())
def test_the_order_is_that_of_a_stable_sort(data: st.DataObject) -> None:
    x, largest = data.draw(strategies.params(wide=True)), data.draw(st.booleans())
    length = data.draw(st.integers(1, 12))
    k = data.draw(st.integers(0, length))
    codes = data.draw(strategies.codes(x.dtype, (2, length)))
    given_model = model(Fed("x", (2, length), x, quantized=True), x, k, largest=int(largest))
    found = intonnx.compile(intonnx.import_model(given_model)).run({"x": codes})
    for row, values, indices in zip(codes.tolist(), found["y"], found["values_1"], strict=True):
        order = sorted(range(length), key=lambda i: (-row[i] if largest else row[i], i))[:k]
        assert (indices.tolist(), values.tolist()) == (order, [row[i] for i in order])


def test_long_axes_need_wide_keys() -> None:
    x = Fed("x", (1, 70000), u16(0.01, 7), quantized=True)
    given_model = model(x, x.params, 500)
    check_model(given_model, run_inputs(given_model), quanta=0)


def test_a_count_given_at_run_time() -> None:
    x = Fed("x", SHAPE, u8(0.7, 14), quantized=True)
    given_model = model(x, u8(0.7, 14), None)
    feeds = {"x": few_codes(np.uint8), "k": np.asarray([2])}
    check_model(given_model, feeds, quanta=0)
    with pytest.raises(intonnx.RunFailure, match="k is 6 for an axis of 5"):
        intonnx.compile(intonnx.import_model(given_model)).run({**feeds, "k": np.asarray([6])})


def test_without_an_order_the_same_elements_come_sorted() -> None:
    x = Fed("x", (4, 50), u8(0.7, 14), quantized=True)
    given_model = model(x, x.params, 7, sorted=0)
    feeds = run_inputs(given_model)
    found = intonnx.compile(intonnx.import_model(given_model)).run(feeds)
    wanted = run_onnxruntime(given_model, feeds, optimized=False)
    np.testing.assert_array_equal(found["y"], -np.sort(-wanted["y"].astype(int)))
    np.testing.assert_array_equal(np.sort(found["values_1"]), np.sort(wanted["values_1"]))


@pytest.mark.parametrize("which", ["y", "values_1"])
@pytest.mark.parametrize("form", ["qlinear", "qdq"])
@pytest.mark.parametrize("x", [u8(0.7, 14), u16(0.7, 14)])
def test_one_result_alone(x: Params, form: Any, which: str) -> None:
    given_model = model(Fed("x", SHAPE, x, quantized=True), x)
    kept = [output for output in given_model.graph.output if output.name == which]
    del given_model.graph.output[:]
    given_model.graph.output.extend(kept)
    graph = intonnx.import_model(given_model)
    assert intonnx.parse(str(graph), weights=graph.constants) == graph
    feeds = {"x": few_codes(x.dtype)}
    wanted = run_onnxruntime(given_model, feeds, optimized=False)
    exported = intonnx.to_onnx(graph, form=form)
    for found in (
        intonnx.compile(graph).run(feeds),
        run_onnxruntime(exported, feeds, optimized=True),
    ):
        np.testing.assert_array_equal(found[which], wanted[which])


@pytest.mark.parametrize(
    ("x", "code"),
    [
        (Fed("x", (3, 4)), "input-not-quantized"),
        (Fed("x", (3, 4), u8([0.1] * 3, [0] * 3, axis=0)), "per-axis-input"),
    ],
)
def test_refusals(x: Fed, code: str) -> None:
    assert refusal_of(model(x, None), "TopK")[0] == code


def test_sums_are_refused() -> None:
    build = Builder(21)
    x = build.operand(Fed("x", (2, 3), u8(0.25, 100)), 0)
    w = build.operand(Held(np.ones((3, 4)), s8([0.5] * 4, 0, 1)), 1)
    product = build.node("MatMul", [x, w])
    build.node("TopK", [product, build.constant("k", np.asarray([2]))], name="y", results=2)
    build.output("y", np.float32)
    assert refusal_of(build.model(), "TopK")[0] == "input-not-quantized"
