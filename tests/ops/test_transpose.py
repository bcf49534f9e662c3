"""qnn.transpose: constraints, and Transpose through every wing."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import intonnx
from intonnx.ir.errors import TypeFailure
from intonnx.ir.ops.transpose import Transpose
from support.models import Builder, Fed, Held, chain_model, qdq_model, run_inputs, s8, s32, u8
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


def test_transpose_c1_the_axes_each_once() -> None:
    for perm in ((0, 0, 1), (0, 1), (0, 1, 3), (0, 1, -1)):
        with pytest.raises(TypeFailure, match=r"qnn\.transpose C1"):
            Transpose(perm=perm).infer([kind((2, 3, 4))])
    with pytest.raises(TypeFailure, match="C1"):
        Transpose(perm=(0, 2)).infer([kind(None)])


def test_transpose_c2_per_axis_codes_of_unknown_rank() -> None:
    with pytest.raises(TypeFailure, match="C2"):
        Transpose().infer([kind(None, axis=1, n=3)])
    assert Transpose(perm=(1, 0)).infer([kind(None, axis=1, n=3)])[0].params.axis == 0


def test_the_result_type_keeps_symbols_and_unknown_ranks() -> None:
    assert shape_of(Transpose(perm=(2, 0, 1)), kind(("N", 3, "?"))) == ("?", "N", 3)
    assert shape_of(Transpose(), kind(("N", 3, 4))) == (4, 3, "N")
    assert shape_of(Transpose(), kind(None)) is None
    assert shape_of(Transpose(perm=(1, 0)), kind(None)) == ("?", "?")


@pytest.mark.parametrize("axis", range(3))
def test_parameters_follow_their_axis(axis: int) -> None:
    shape = (2, 6, 4)
    for perm in permutations(range(3)):
        (moved,) = Transpose(perm=perm).infer([kind(shape, axis=axis, n=shape[axis])])
        assert perm[moved.params.axis or 0] == axis
        (moved,) = Transpose(perm=perm).infer([blocked(shape, axis, 2)])
        np.testing.assert_array_equal(
            moved.params.scale, blocked(shape, axis, 2).params.scale.transpose(perm)
        )
        assert perm[moved.params.axis or 0] == axis


@pytest.mark.parametrize("perm", [[0, 2, 3, 1], [3, 0, 1, 2], None])
def test_transpose_between_quantizers(perm: list[int] | None) -> None:
    check_mover("Transpose", (2, 3, 4, 5), **({} if perm is None else {"perm": perm}))


@pytest.mark.parametrize("opset", [10, 13, 25])
def test_transpose_at_every_opset(opset: int) -> None:
    check_mover("Transpose", (2, 3, 4), opset=opset, perm=[2, 0, 1])


@given(st.permutations(range(4)), st.permutations(range(4)))
def test_two_transposes_on_codes(first: list[int], second: list[int]) -> None:
    steps = [("Transpose", {"perm": first}), ("Transpose", {"perm": second})]
    model = chain_model(Fed("x", (2, 1, 3, 4), u8(0.1, 7)), steps, out=u8(0.1, 7))
    graph = intonnx.import_model(model)
    assert names_of(graph) == ["qnn.transpose"] * 2
    x = run_inputs(model)
    codes = run_onnxruntime(model, x, optimized=False)["y"]
    np.testing.assert_array_equal(intonnx.compile(graph).run(x)["y"], codes)


def test_per_axis_parameters_go_through() -> None:
    before, after = per_axis(3, 1), per_axis(3, 3)
    for quantized in (True, False):
        fed = Fed("x", (2, 3, 4, 5), before, quantized=quantized)
        for out in (after, s8(0.3, 5)):
            model = qdq_model("Transpose", [fed], out=out, attrs={"perm": [0, 2, 3, 1]})
            graph = check_same(model)
            more = [] if out is after else ["qnn.requantize"]
            assert sorted(names_of(graph)) == [*more, "qnn.transpose"]


def test_codes_are_moved_between_a_quantizer_and_a_dequantizer() -> None:
    before, after = per_axis(3, 1), per_axis(3, 3)
    graph = check_same(codes_model("Transpose", (2, 3, 4, 5), before, after, perm=[0, 2, 3, 1]))
    assert [node.op.name for node in graph.nodes] == [
        "qnn.quantize",
        "qnn.transpose",
        "qnn.dequantize",
    ]


def test_codes_that_get_other_parameters_after_the_transpose_are_cast() -> None:
    graph = check_same(codes_model("Transpose", (2, 3), u8(0.1, 7), u8(0.3, 9)))
    assert "qnn.storage_cast" in [node.op.name for node in graph.nodes]


@pytest.mark.parametrize("opset", [13, 21])
def test_constants_are_transposed_at_import(opset: int) -> None:
    codes = np.arange(-12, 12, dtype=np.int8).reshape(2, 3, 4)
    found = check_constant("Transpose", codes, per_axis(3, 1), opset=opset, perm=[2, 0, 1])
    assert (found.shape, found.params.axis) == ((4, 2, 3), 2)
    found = check_constant("Transpose", codes, s8(0.1, None), opset=opset)
    assert (found.shape, found.params.axis) == ((4, 3, 2), None)


def test_a_per_channel_weight_through_a_transpose() -> None:
    rng = np.random.default_rng(0)
    weight = Held(rng.integers(-127, 128, (5, 8)).astype(np.int8), per_axis(5, 0))
    weight = Held(weight.value, s8(weight.params.scale, np.zeros(5), 0))  # type: ignore[union-attr]
    build = Builder()
    x = build.operand(Fed("x", (3, 8), u8(0.02, 114)), 0)
    transposed = build.node("Transpose", [build.operand(weight, 1)], perm=[1, 0])
    y = build.quantize(build.node("MatMul", [x, transposed]), u8(0.5, 100), "y")
    build.output(y, np.uint8)
    model = build.model()
    graph = intonnx.import_model(model)
    assert intonnx.coverage(graph).float == 0
    assert "qnn.transpose" not in names_of(graph)
    x_values = run_inputs(model)
    found = intonnx.compile(graph).run(x_values)["y"].astype(int)
    wanted = run_onnxruntime(model, x_values, optimized=False)["y"].astype(int)
    assert np.abs(found - wanted).max() <= 1


def test_accumulators_are_transposed_before_their_requantize() -> None:
    rng = np.random.default_rng(0)
    w = Held(
        rng.integers(-9, 9, (4, 3, 3, 3)).astype(np.int8), s8(0.1 + np.arange(4) / 8, [0] * 4, 0)
    )
    bias = Held(np.arange(4), s32(0.02 * (0.1 + np.arange(4) / 8), [0] * 4, 0))
    build = Builder()
    operands = [
        build.operand(o, i) for i, o in enumerate([Fed("x", (1, 3, 5, 6), u8(0.02, 9)), w, bias])
    ]
    moved = build.node("Transpose", [build.node("Conv", operands)], perm=[0, 2, 3, 1])
    build.output(build.node("Identity", [moved], name="y"), np.float32)
    model = build.model()
    graph = intonnx.import_model(model)
    assert names_of(graph) == ["qnn.conv2d", "qnn.transpose"]
    x = run_inputs(model)
    wanted = run_onnxruntime(model, x, optimized=False)["y"]
    for form in ("qlinear", "qdq"):
        exported = intonnx.to_onnx(graph, form=form)
        np.testing.assert_allclose(run_onnxruntime(exported, x, optimized=False)["y"], wanted, 1e-5)
    np.testing.assert_allclose(intonnx.compile(graph).run(x)["y"], wanted, 1e-5, 1e-6)


def test_the_kernel_copies_nothing() -> None:
    assert all(shares_memory(Transpose(perm=perm), (2, 3, 4)) for perm in permutations(range(3)))
