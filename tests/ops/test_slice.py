"""qnn.slice: constraints, and Slice through every wing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import intonnx
from intonnx.ir.errors import TypeFailure
from intonnx.ir.ops.slice import Slice
from intonnx.ir.reasons import Code
from support.models import Builder, Fed, Held, qdq_model, run_inputs, s8, u8
from support.movers import (
    blocked,
    check_constant,
    check_mover,
    check_same,
    codes_model,
    kind,
    names_of,
    per_axis,
    shape_of,
    shares_memory,
)
from support.runtime import run_onnxruntime
from support.wings import apart, refusal_of

END = 2**63 - 1


def cut(axis: int, start: int, end: int, step: int = 1) -> Slice:
    return Slice(starts=(start,), ends=(end,), axes=(axis,), steps=(step,))


def test_slice_c1_equal_lengths_and_steps() -> None:
    with pytest.raises(TypeFailure, match=r"qnn\.slice C1"):
        Slice(starts=(0,), ends=(1, 2), axes=(0,), steps=(1,)).infer([kind((4,))])
    with pytest.raises(TypeFailure, match="C1"):
        cut(0, 0, 1, 0).infer([kind((4,))])


@pytest.mark.parametrize("axes", [(2, 0), (0, -2), (-3, 0)])
def test_slice_c2_the_axes_each_once(axes: tuple[int, ...]) -> None:
    with pytest.raises(TypeFailure, match="C2"):
        Slice(starts=(0, 0), ends=(1, 1), axes=axes, steps=(1, 1)).infer([kind((4, 4))])


def test_slice_c3_per_axis_and_blocked() -> None:
    for x, op in (
        (kind((2, 3), axis=1, n=3), cut(1, 5, 9)),
        (kind(None, axis=1, n=3), cut(0, 0, 1)),
        (kind((2, "?"), axis=1, n=3), cut(1, 1, 2)),
        (blocked((2, 6), 1, 3), cut(1, 0, 3)),
        (blocked((2, 6), 1, 3), cut(0, 0, 1)),
    ):
        with pytest.raises(TypeFailure, match="C3"):
            op.infer([x])


def test_the_result_shape() -> None:
    assert shape_of(cut(1, 0, END), kind(("N", "M"))) == ("N", "M")
    assert shape_of(cut(1, 0, 3), kind(("N", "M"))) == ("N", "?")
    assert shape_of(cut(-1, -3, END, 2), kind(("N", 7))) == ("N", 2)
    assert shape_of(cut(0, 1, 2), kind(None)) is None
    assert shape_of(cut(0, 3, 1), kind((5,))) == (0,)


def test_an_axis_with_parameters_is_cut_with_them() -> None:
    (moved,) = cut(1, -1, -END, -2).infer([kind((2, 5), axis=1, n=5)])
    np.testing.assert_array_equal(moved.params.scale, [5, 3, 1])
    (moved,) = cut(0, 1, 2).infer([kind((2, 5), axis=1, n=5)])
    assert (moved.shape, moved.params.scale.size) == ((1, 5), 5)
    assert cut(0, 0, END).infer([blocked((2, 6), 1, 3)]) == (blocked((2, 6), 1, 3),)


CASES: list[list[Any]] = [
    [[1], [3]],
    [[1, 0], [3, -1], [2, 0]],
    [[-1, 4], [-END - 1, 1], [-1, 1], [-2, -1]],
    [[0], [END], [-2]],
    [[3], [1], [1]],
]


@pytest.mark.parametrize("bounds", CASES)
def test_slice_between_quantizers(bounds: list[Any]) -> None:
    check_mover("Slice", (4, 5, 6), bounds)


@pytest.mark.parametrize("opset", [10, 11, 13, 25])
def test_slice_at_every_opset(opset: int) -> None:
    check_mover("Slice", (4, 5, 6), [[-1, 1], [-9, 4], [2, 0], [-1, 2]], opset=opset)


@given(st.integers(0, 6), st.data())
def test_any_bounds_are_those_of_onnxruntime(size: int, data: st.DataObject) -> None:
    bound = st.integers(-9, 9) | st.sampled_from([END, -END - 1, 2**31 - 1])
    start, end = data.draw(bound), data.draw(bound)
    step = data.draw(st.integers(-4, 4).filter(bool))
    build = Builder()
    x = build.operand(Fed("x", ("N", 2), u8(0.5, 3), quantized=True), 0)
    names = [build.constant(f"b{i}", np.array([v])) for i, v in enumerate((start, end, 0, step))]
    build.output(build.quantize(build.node("Slice", [x, *names]), u8(0.5, 3), "y"), np.uint8)
    model = build.model()
    codes = {"x": np.arange(2 * size, dtype=np.uint8).reshape(size, 2)}
    wanted = run_onnxruntime(model, codes, optimized=False)["y"]
    found = intonnx.compile(intonnx.import_model(model)).run(codes)["y"]
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("end", [2**31 - 1, END])
def test_an_axis_of_known_size_is_reversed_up_to_the_largest_integer(end: int) -> None:
    # Shape inference of the onnx package says that nothing is left; onnxruntime reverses.
    for out in (u8(0.5, 3), u8(0.1, 7)):
        for quantized in (True, False):
            build = Builder()
            x = build.operand(Fed("x", (4, 2), u8(0.5, 3), quantized), 0)
            names = [build.constant(f"b{i}", np.array([v])) for i, v in enumerate((-1, end, 0, -1))]
            part = build.node("Slice", [x, *names])
            build.output(build.quantize(part, out, "y"), np.uint8)
            build.output(build.node("Neg", [part], name="z"), np.float32)
            model = build.model()
            inputs = run_inputs(model)
            wanted = run_onnxruntime(model, inputs, optimized=False)
            assert wanted["y"].shape == (4, 2)
            graph = intonnx.import_model(model)
            apart(intonnx.compile(graph).run(inputs), wanted, 0)
            apart(run_onnxruntime(intonnx.to_onnx(graph), inputs, optimized=False), wanted, 0)


def test_bounds_of_32_bits() -> None:
    bounds = [np.array(v, np.int32) for v in ([1], [2**31 - 1], [1], [2])]
    check_mover("Slice", (3, 5), bounds)


def test_per_axis_parameters_follow() -> None:
    before = per_axis(5, 1)
    after = s8(before.scale[1:4:2], before.zero_point[1:4:2], 1)
    bounds = [[1], [4], [1], [2]]
    fed = Fed("x", (2, 5, 3), before, quantized=True)
    graph = check_same(qdq_model("Slice", [fed, *(Held(np.array(b)) for b in bounds)], out=after))
    assert names_of(graph) == ["qnn.slice"]
    check_same(codes_model("Slice", (2, 5, 3), before, after, bounds))
    codes = np.arange(-15, 15, dtype=np.int8).reshape(2, 5, 3)
    assert check_constant("Slice", codes, before, bounds).params.scale.size == 2


def test_a_constant_that_the_reference_operator_slices_otherwise_is_sliced_at_run_time() -> None:
    # Backwards, a start before the first element is the first element; the onnx package skips it.
    build = Builder()
    x = build.operand(Held(np.array([7, 9], np.uint8), u8(0.5, 3)), 0)
    names = [build.constant(f"b{i}", np.array([v])) for i, v in enumerate((-9, -99, 0, -1))]
    build.output(build.quantize(build.node("Slice", [x, *names]), u8(0.5, 3), "y"), np.uint8)
    model = build.model()
    wanted = run_onnxruntime(model, {}, optimized=False)
    assert wanted["y"].tolist() == [7]
    apart(intonnx.compile(intonnx.import_model(model)).run({}), wanted, 0)


def test_bounds_computed_at_run_time_are_refused() -> None:
    build = Builder()
    x = build.operand(Fed("x", (4,), u8(0.1), quantized=True), 0)
    starts = build.feed("starts", [1], np.int64)
    moved = build.node("Slice", [x, starts, build.constant("ends", np.array([4]))])
    build.output(build.quantize(moved, u8(0.1), "y"), np.uint8)
    code, detail = refusal_of(build.model(), "Slice")
    assert code == Code.RUNTIME_CONSTANT
    assert "the starts of the slice 'starts'" in detail


def test_overlapping_slices_of_one_tensor() -> None:
    build = Builder()
    x = build.operand(Fed("x", (2, 6), u8(0.1, 3)), 0)
    for i, (start, end) in enumerate(((0, 4), (2, 6))):
        names = [build.constant(f"b{i}{j}", np.array([v])) for j, v in enumerate((start, end, 1))]
        part = build.node("Slice", [x, *names])
        build.output(build.quantize(part, u8(0.1 + 0.2 * i, 3), f"y{i}"), np.uint8)
    model = build.model()
    assert names_of(check_same(model, run_inputs(model))).count("qnn.slice") == 2


def test_the_kernel_copies_nothing() -> None:
    assert shares_memory(cut(1, -1, -END, -2), (2, 5))
