"""qnn.split: constraints, and Split through every wing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import intonnx
from intonnx.ir.errors import RunFailure, TypeFailure
from intonnx.ir.ops.split import Split
from intonnx.ir.reasons import Code
from support.models import Builder, Fed, Held, Params, qdq_model, run_inputs, s8, u8
from support.movers import (
    blocked,
    check_mover,
    check_same,
    codes_model,
    kind,
    names_of,
    per_axis,
    shares_memory,
)
from support.runtime import run_onnxruntime
from support.wings import refusal_of


def shapes(op: Split, x: Any) -> list[Any]:
    return [found.shape for found in op.infer([x])]


def test_split_c1_the_axis() -> None:
    for op, x in (
        (Split(axis=2, parts=1), kind((2, 3))),
        (Split(axis=-3, parts=1), kind((2, 3))),
        (Split(axis=-1, parts=1), kind(None)),
        (Split(axis=0, parts=1), kind(None, axis=1, n=2)),
    ):
        with pytest.raises(TypeFailure, match=r"qnn\.split C1"):
            op.infer([x])


@pytest.mark.parametrize(
    "sizes", [{}, {"sizes": (1,), "parts": 1}, {"sizes": (-1, 5)}, {"parts": 0}]
)
def test_split_c2_sizes_or_parts(sizes: dict[str, Any]) -> None:
    with pytest.raises(TypeFailure, match="C2"):
        Split(**sizes).infer([kind((4,))])


@pytest.mark.parametrize("sizes", [{"sizes": (1, 2)}, {"parts": 4}])
def test_split_c3_the_sizes_add_up(sizes: dict[str, Any]) -> None:
    with pytest.raises(TypeFailure, match="C3"):
        Split(**sizes).infer([kind((5,))])


def test_split_c4_per_axis_and_blocked() -> None:
    for op, x in (
        (Split(axis=1, sizes=(0, 3)), kind((2, 3), axis=1, n=3)),
        (Split(axis=1, parts=3), kind((2, "N"), axis=1, n=3)),
        (Split(axis=0, parts=2), blocked((2, 6), 1, 3)),
    ):
        with pytest.raises(TypeFailure, match="C4"):
            op.infer([x])


def test_the_result_shapes() -> None:
    assert shapes(Split(axis=-1, parts=3), kind(("N", 8))) == [("N", 3), ("N", 3), ("N", 2)]
    assert shapes(Split(sizes=(1, 2)), kind(("N", 8))) == [(1, 8), (2, 8)]
    assert shapes(Split(parts=2), kind(("N", 8))) == [("?", 8)] * 2
    assert shapes(Split(parts=2), kind(None)) == [None] * 2


@pytest.mark.parametrize("sizes", [[1, 2, 3], [2, 2, 2], [0, 6, 0]])
def test_split_between_quantizers(sizes: list[int]) -> None:
    check_mover("Split", (2, 6, 3), [sizes], results=3, axis=1)


@pytest.mark.parametrize("opset", [10, 11, 13, 18, 25])
def test_split_at_every_opset(opset: int) -> None:
    if opset < 13:
        check_mover("Split", (2, 6), results=2, opset=opset, axis=1, split=[4, 2])
        check_mover("Split", (2, 6), results=2, opset=opset)
    elif opset < 18:
        check_mover("Split", (2, 6), [[4, 2]], results=2, opset=opset, axis=-1)
        check_mover("Split", (2, 6), results=3, opset=opset, axis=1)
    else:
        check_mover("Split", (2, 6), [[4, 2]], results=2, opset=opset, axis=-1)
        check_mover("Split", (2, 7), results=3, opset=opset, axis=1, num_outputs=3)


@pytest.mark.parametrize("opset", [13, 18])
def test_parts_of_a_symbolic_axis(opset: int) -> None:
    attrs = {"num_outputs": 2} if opset >= 18 else {}
    fed = Fed("x", ("N", 3), u8(0.1, 4), quantized=True)
    model = qdq_model("Split", [fed], out=u8(0.1, 4), opset=opset, results=2, attrs=attrs)
    for size in (2, 6):
        x = {"x": np.arange(3 * size, dtype=np.uint8).reshape(size, 3)}
        check_same(model, x)
    fed = Fed("x", ("N", 3), u8(0.1, 4), quantized=True)
    model = qdq_model("Split", [fed, Held(np.array([1, 2]))], out=u8(0.1, 4), results=2)
    check_same(model, {"x": np.arange(9, dtype=np.uint8).reshape(3, 3)})
    with pytest.raises(RunFailure, match="C3"):
        intonnx.compile(intonnx.import_model(model)).run({"x": np.zeros((4, 3), np.uint8)})


def several(outs: list[Params | None], quantized: bool) -> Any:
    """One split, a result for each of `outs`: codes, float for None."""
    build = Builder()
    x = build.operand(Fed("x", (2, 6), s8(0.1, 3), quantized=quantized), 0)
    sizes = build.constant("sizes", np.array([6 // len(outs)] * len(outs)))
    part = build.node("Split", [x, sizes], axis=1, results=len(outs), name="part")
    for i, out in enumerate(outs):
        value = part if i == 0 else f"{part}_{i}"
        if out is None:
            build.output(build.node("Identity", [value], name=f"y{i}"), np.float32)
        else:
            build.output(build.quantize(value, out, f"y{i}"), out.dtype)
    return build.model()


@pytest.mark.parametrize("quantized", [True, False])
def test_every_result_has_its_own_parameters(quantized: bool) -> None:
    graph = check_same(several([s8(0.1, 3), u8(0.5, 9), None], quantized))
    assert names_of(graph) == ["qnn.split", "qnn.requantize"]


def test_results_that_nothing_reads() -> None:
    build = Builder()
    x = build.operand(Fed("x", (2, 6), s8(0.1, 3)), 0)
    part = build.node("Split", [x], axis=1, results=3, name="part", num_outputs=3)
    build.output(build.quantize(f"{part}_1", s8(0.1, 3), "y"), np.int8)
    model = build.model()
    assert names_of(check_same(model)) == ["qnn.split"]
    x = run_inputs(model)
    wanted = run_onnxruntime(model, x, optimized=False)["y"]
    # onnxruntime crashes on such a result; what we write has none.
    model.graph.node[2].output[0] = ""
    graph = intonnx.import_model(model)
    assert graph.nodes[-1].results[0] == ""
    np.testing.assert_array_equal(intonnx.compile(graph).run(x)["y"], wanted)
    for form in ("qlinear", "qdq"):
        exported = intonnx.to_onnx(graph, form=form)
        np.testing.assert_array_equal(run_onnxruntime(exported, x, optimized=False)["y"], wanted)


def test_the_parts_of_a_convolution_are_requantized_each() -> None:
    build = Builder()
    w = np.random.default_rng(0).integers(-9, 9, (4, 3, 1, 1)).astype(np.int8)
    weights = Held(w, s8(0.1 + np.arange(4) / 8, [0] * 4, 0))
    x = build.operand(Fed("x", (1, 3, 5, 6), u8(0.02, 9)), 0)
    conv = build.node("Conv", [x, build.operand(weights, 1)])
    part = build.node("Split", [conv], axis=1, results=2, num_outputs=2, name="part")
    build.output(build.quantize(part, u8(0.02, 100), "y0"), np.uint8)
    build.output(build.quantize(f"{part}_1", s8(0.03, 1), "y1"), np.int8)
    model = build.model()
    graph = intonnx.import_model(model)
    assert names_of(graph) == ["qnn.conv2d", "qnn.split", "qnn.requantize", "qnn.requantize"]
    inputs = run_inputs(model)
    wanted = run_onnxruntime(model, inputs, optimized=False)
    found = intonnx.compile(graph).run(inputs)
    exported = run_onnxruntime(intonnx.to_onnx(graph), inputs, optimized=False)
    for name, array in found.items():
        assert np.abs(array.astype(int) - wanted[name].astype(int)).max() <= 1
        np.testing.assert_array_equal(exported[name], array)


def test_per_axis_parameters_are_split_too() -> None:
    before = per_axis(6, 1)
    outs = [s8(before.scale[a:b], before.zero_point[a:b], 1) for a, b in ((0, 2), (2, 6))]
    build = Builder()
    x = build.operand(Fed("x", (2, 6), before, quantized=True), 0)
    sizes = build.constant("sizes", np.array([2, 4]))
    part = build.node("Split", [x, sizes], axis=1, results=2, name="part")
    build.output(build.quantize(part, outs[0], "y0"), np.int8)
    build.output(build.quantize(f"{part}_1", outs[1], "y1"), np.int8)
    assert names_of(check_same(build.model())) == ["qnn.split"]


def test_codes_are_split_between_a_quantizer_and_a_dequantizer() -> None:
    model = codes_model("Split", (2, 6), u8(0.1, 7), u8(0.1, 7), [[2, 4]], results=2, axis=1)
    assert names_of(check_same(model)) == ["qnn.split"]


def test_sizes_computed_at_run_time_are_refused() -> None:
    build = Builder()
    x = build.operand(Fed("x", (4,), u8(0.1), quantized=True), 0)
    part = build.node("Split", [x, build.feed("sizes", [1], np.int64)])
    build.output(build.quantize(part, u8(0.1), "y"), np.uint8)
    assert refusal_of(build.model(), "Split")[0] == Code.RUNTIME_CONSTANT


def test_the_kernel_copies_nothing() -> None:
    assert shares_memory(Split(axis=1, sizes=(1, 2)), (2, 3))


@pytest.mark.parametrize("opset", [13, 17, 18, 21])
def test_parts_at_the_end_that_nothing_reads_are_written(opset: int) -> None:
    """onnxruntime refuses a Split that is told more sizes than it has results."""
    build = Builder(opset)
    value = build.operand(Fed("x", (2, 5), u8(0.05, 100)), 0)
    sizes = build.constant("sizes", np.asarray([2, 3]))
    first = build.node("Split", [value, sizes], results=2, axis=1)
    build.output(build.dequantize(build.quantize(first, u8(0.04)), u8(0.04), "y"), np.float32)
    model = build.model()
    x = run_inputs(model)
    graph = intonnx.import_model(model)
    ours = intonnx.compile(graph).run(x)["y"]
    for form in ("qlinear", "qdq"):
        exported = intonnx.to_onnx(graph, form=form)  # type: ignore[arg-type]
        np.testing.assert_array_equal(run_onnxruntime(exported, x, optimized=False)["y"], ours)
