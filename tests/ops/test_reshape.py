"""Reshape, Flatten, Squeeze and Unsqueeze through every wing."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import onnx
import pytest

import intonnx
from intonnx.ir.errors import RunFailure
from intonnx.ir.ops.reshape import Flatten, Reshape, Squeeze, Unsqueeze
from intonnx.ir.reasons import Code
from intonnx.ir.types import DType
from support.models import Array, Builder, Fed, Held, Params, qdq_model, s8, u8
from support.movers import (
    check_constant,
    check_mover,
    check_same,
    codes_model,
    names_of,
    per_axis,
    run_kernel,
    shares_memory,
)
from support.runtime import run_onnxruntime
from support.wings import refusal_of


@pytest.mark.parametrize("target", [[0, -1], [6, 20], [-1], [2, 1, 0, 3, -1, 1]])
def test_reshape_between_quantizers(target: list[int]) -> None:
    check_mover("Reshape", (2, 3, 4, 5), [target])


@pytest.mark.parametrize("axis", [0, 1, 2, 4, -1, -3])
def test_flatten_between_quantizers(axis: int) -> None:
    check_mover("Flatten", (2, 3, 4, 5), axis=axis)


@pytest.mark.parametrize("opset", [10, 11, 13, 25])
def test_squeeze_and_unsqueeze_at_every_opset(opset: int) -> None:
    for op_type, axes in (("Squeeze", [1, -1]), ("Unsqueeze", [1, -1]), ("Squeeze", None)):
        if opset < 13:
            axes = None if axes is None else [1, 3 if op_type == "Squeeze" else 5]
            check_mover(
                op_type, (2, 1, 3, 1), opset=opset, **({} if axes is None else {"axes": axes})
            )
        else:
            check_mover(op_type, (2, 1, 3, 1), [] if axes is None else [axes], opset=opset)


@pytest.mark.parametrize("opset", [10, 13, 14, 25])
def test_reshape_and_flatten_at_every_opset(opset: int) -> None:
    check_mover("Reshape", (2, 3, 4), [[0, 2, -1]], opset=opset)
    check_mover("Flatten", (2, 3, 4), opset=opset)


def test_allowzero() -> None:
    model = qdq_model(
        "Reshape",
        [Fed("x", ("N", 3), u8(0.1), quantized=True), Held(np.array([0, 7]))],
        out=u8(0.1),
        attrs={"allowzero": 1},
    )
    check_same(model, {"x": np.zeros((0, 3), np.uint8)})


def dynamic_model(params: Params, *, rank: int | None = None) -> onnx.ModelProto:
    """x [N, 3, 4] and a target that the caller gives; `rank` is what is known of its length."""
    build = Builder()
    x = build.operand(Fed("x", ("N", 3, 4), params, quantized=True), 0)
    target = build.feed("shape", ["R" if rank is None else rank], np.int64)
    moved = build.node("Reshape", [x, target])
    build.output(build.dequantize(build.quantize(moved, u8(0.3, 4)), u8(0.3, 4), "y"), np.float32)
    return build.model()


@pytest.mark.parametrize("rank", [2, None])
def test_a_target_computed_at_run_time(rank: int | None) -> None:
    model = dynamic_model(u8(0.3, 4), rank=rank)
    x = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    graph = check_same(model, {"x": x, "shape": np.array([0, -1])})
    assert names_of(graph) == ["qnn.reshape"]
    for bad in ([-1, -1], [5, -1], [0, -2], [0, 3, 4, 0]):
        if rank is None or len(bad) == rank:
            with pytest.raises(RunFailure, match=r"Reshape|reshape"):
                intonnx.compile(graph).run({"x": x, "shape": np.array(bad)})


def test_a_computed_target_has_the_shape_that_the_model_declares() -> None:
    build = Builder()
    x = build.operand(Fed("x", ("N", 3, 4), u8(0.3, 4), quantized=True), 0)
    target = build.feed("shape", [2], np.int64)
    moved = build.node("Reshape", [x, target], name="moved")
    build.output(build.quantize(moved, u8(0.1, 4), "y"), np.uint8)
    model = build.model()
    declared = onnx.helper.make_tensor_value_info("moved", onnx.TensorProto.FLOAT, ["N", 12])
    model.graph.value_info.append(declared)
    graph = intonnx.import_model(model)
    assert graph.types["y"].shape == ("N", 12)


def test_a_target_computed_from_the_shape_of_the_input() -> None:
    build = Builder()
    x = build.operand(Fed("x", ("N", 3, 4), u8(0.3, 4)), 0)
    batch = build.node("Shape", [x], start=0, end=1)
    target = build.node("Concat", [batch, build.constant("rest", np.array([12]))], axis=0)
    build.output(build.quantize(build.node("Reshape", [x, target]), u8(0.3, 4), "y"), np.uint8)
    model = build.model()
    inputs = {"x": np.random.default_rng(0).normal(size=(5, 3, 4)).astype(np.float32)}
    wanted = run_onnxruntime(model, inputs, optimized=False)["y"]
    graph = intonnx.import_model(model)
    assert "qnn.reshape" in names_of(graph)
    np.testing.assert_array_equal(intonnx.compile(graph).run(inputs)["y"], wanted)


@pytest.mark.parametrize("batch", [0, 1, 3])
def test_a_symbolic_batch(batch: int) -> None:
    x = np.arange(batch * 12, dtype=np.uint8).reshape(batch, 3, 4)
    targets: list[tuple[str, list[Any], dict[str, Any]]] = [
        ("Flatten", [], {}),
        ("Flatten", [], {"axis": 2}),
        ("Unsqueeze", [[0, 2]], {}),
        ("Reshape", [[-1, 12]], {}),
    ]
    for op_type, others, attributes in targets:
        held = [Held(np.array(other)) for other in others]
        fed = Fed("x", ("N", 3, 4), u8(0.3, 4), quantized=True)
        model = qdq_model(op_type, [fed, *held], out=u8(0.3, 4), attrs=attributes)
        check_same(model, {"x": x})
    # onnxruntime cannot take 0 elements for -1, though only one size fits the type.
    fed = Fed("x", ("N", 3, 4), u8(0.3, 4), quantized=True)
    model = qdq_model("Reshape", [fed, Held(np.array([0, -1]))], out=u8(0.3, 4))
    found = intonnx.compile(intonnx.import_model(model)).run({"x": x})["y"]
    np.testing.assert_array_equal(found, x.reshape(batch, 12))


def test_an_unknown_rank() -> None:
    x = np.arange(12, dtype=np.uint8)
    cases: list[tuple[str, list[Any]]] = [
        ("Flatten", []), ("Unsqueeze", [[-1, 0]]), ("Squeeze", [[0]]), ("Squeeze", []),
        ("Reshape", [[0, -1, 1]]), ("Transpose", []),
    ]  # fmt: skip
    for op_type, others in cases:
        build = Builder()
        fed = build.operand(Fed("x", (12,), u8(0.3, 4), quantized=True), 0)
        shaped = build.node("Reshape", [fed, build.feed("shape", ["R"], np.int64)])
        names = [build.constant("other", np.array(other)) for other in others]
        moved = build.node(op_type, [shaped, *names], name="moved")
        flat = build.node("Reshape", [moved, build.constant("flat", np.array([2, -1]))])
        build.output(build.quantize(flat, u8(0.3, 4), "y"), np.uint8)
        model = build.model()
        graph = check_same(model, {"x": x, "shape": np.array([1, 3, 4])})
        assert names_of(graph) == ["qnn.reshape", f"qnn.{op_type.lower()}", "qnn.reshape"]
        assert graph.types[graph.nodes[1].results[0]].shape is None


PER_AXIS: list[tuple[str, list[Any], tuple[int, ...], int, int]] = [
    ("Reshape", [[2, 3, 20]], (2, 3, 4, 5), 1, 1),
    ("Reshape", [[1, 2, 3, -1]], (2, 3, 4, 5), 1, 2),
    ("Reshape", [[-1, 5]], (2, 3, 4, 5), 3, 1),
    ("Flatten", [], (2, 3, 1, 1), 1, 1),
    ("Squeeze", [[0, 2]], (1, 3, 1, 5), 1, 0),
    ("Squeeze", [], (1, 3, 1, 5), 3, 1),
    ("Unsqueeze", [[0, 3]], (2, 3, 4), 1, 2),
]


@pytest.mark.parametrize(("op_type", "others", "shape", "before", "after"), PER_AXIS)
def test_per_axis_parameters_follow_their_axis(
    op_type: str, others: list[Any], shape: tuple[int, ...], before: int, after: int
) -> None:
    size = shape[before]
    held = [Held(np.array(other)) for other in others]
    for quantized, out in ((True, per_axis(size, after)), (False, s8(0.3, 5))):
        fed = Fed("x", shape, per_axis(size, before), quantized=quantized)
        graph = check_same(qdq_model(op_type, [fed, *held], out=out))
        assert f"qnn.{op_type.lower()}" in names_of(graph)
    check_same(codes_model(op_type, shape, per_axis(size, before), per_axis(size, after), others))
    codes = np.random.default_rng(0).integers(-128, 128, shape).astype(np.int8)
    found = check_constant(op_type, codes, per_axis(size, before), others)
    assert found.params.axis == after


@pytest.mark.parametrize("opset", [10, 13, 21])
def test_an_int8_constant_without_zero_point_is_reshaped_at_import(opset: int) -> None:
    codes = np.arange(-12, 12, dtype=np.int8).reshape(2, 3, 4)
    found = check_constant("Reshape", codes, s8(0.1, None), [[4, -1]], opset=opset)
    assert (found.dtype, found.shape) == (DType.I8, (4, 6))


def test_a_reshape_and_a_transpose_before_one_quantizer() -> None:
    for out in (u8(0.02, 114), u8(0.5, 3)):
        for quantized in (True, False):
            build = Builder()
            x = build.operand(Fed("x", (2, 3, 4), u8(0.02, 114), quantized=quantized), 0)
            flat = build.node("Reshape", [x, build.constant("shape", np.array([0, -1]))])
            moved = build.node("Transpose", [flat], perm=[1, 0])
            build.output(build.quantize(moved, out, "y"), np.uint8)
            names = names_of(check_same(build.model()))
            assert names[-2:] == ["qnn.reshape", "qnn.transpose"]
            assert names[:-2] == ([] if out.scale == 0.02 else ["qnn.requantize"])


def test_per_axis_parameters_that_do_not_survive_are_refused() -> None:
    fed = Fed("x", (2, 3, 4), per_axis(3, 1), quantized=True)
    model = qdq_model("Reshape", [fed, Held(np.array([6, 4]))])
    code, detail = refusal_of(model, "Reshape")
    assert code == Code.PER_AXIS_INPUT
    assert "'x.codes' has a scale for each index of axis 1" in detail
    x = {"x": np.arange(24, dtype=np.int8).reshape(2, 3, 4)}
    wanted = run_onnxruntime(model, x, optimized=False)["y"]
    found = intonnx.compile(intonnx.import_model(model)).run(x)["y"]
    np.testing.assert_array_equal(found, wanted)


def test_axes_computed_at_run_time_are_refused() -> None:
    build = Builder()
    x = build.operand(Fed("x", (1, 3), u8(0.1), quantized=True), 0)
    moved = build.node("Squeeze", [x, build.feed("axes", [1], np.int64)])
    build.output(build.quantize(moved, u8(0.1), "y"), np.uint8)
    assert refusal_of(build.model(), "Squeeze")[0] == Code.RUNTIME_CONSTANT


def test_an_invalid_reshape_is_an_import_failure() -> None:
    fed = Fed("x", (2, 3, 4), u8(0.1), quantized=True)
    model = qdq_model("Flatten", [fed], out=u8(0.1))
    model.graph.node[1].attribute.append(onnx.helper.make_attribute("axis", 9))
    with pytest.raises(intonnx.ImportFailure, match=r"f_node.*C1"):
        intonnx.import_model(model)


def test_the_kernels_copy_nothing() -> None:
    assert shares_memory(Reshape(shape=(0, -1)), (2, 3, 4))
    assert shares_memory(Flatten(), (2, 3, 4))
    assert shares_memory(Squeeze(), (2, 1, 4))
    assert shares_memory(Unsqueeze(axes=(0,)), (2, 1, 4))
    x: Array = np.arange(6, dtype=np.uint8).reshape(2, 3)
    for shape in itertools.permutations((1, 2, 3)):
        np.testing.assert_array_equal(run_kernel(Reshape(shape=shape), x)[0], x.reshape(shape))
