"""qnn.gather: constraints, and Gather through every wing."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

import intonnx
from intonnx.ir.errors import RunFailure, TypeFailure
from intonnx.ir.ops.gather import Gather
from intonnx.ir.reasons import Code
from intonnx.ir.types import DType, plain
from support.models import Builder, Fed, Held, Params, qdq_model, s8, u8
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
)
from support.wings import refusal_of

INDICES = plain(DType.I64, (2, 1))


def test_gather_c1_the_axis() -> None:
    for axis, x in ((2, kind((2, 3))), (-3, kind((2, 3))), (-1, kind(None))):
        with pytest.raises(TypeFailure, match=r"qnn\.gather C1"):
            Gather(axis=axis).infer([x, INDICES])


def test_gather_c2_the_indices() -> None:
    for indices in (plain(DType.F32, (2,)), kind((2,))):
        with pytest.raises(TypeFailure, match="C2"):
            Gather().infer([kind((2, 3)), indices])


def test_gather_c3_per_axis_and_blocked() -> None:
    for x, indices in (
        (kind((2, 3), axis=1, n=3), INDICES),
        (blocked((2, 6), 0, 2), INDICES),
        (kind(None, axis=0, n=3), INDICES),
        (kind((2, 3), axis=0, n=2), plain(DType.I64, None)),
    ):
        with pytest.raises(TypeFailure, match="C3"):
            Gather(axis=1).infer([x, indices])


def test_the_result_shape() -> None:
    assert shape_of(Gather(axis=1), kind(("N", 3, 4)), INDICES) == ("N", 2, 1, 4)
    assert shape_of(Gather(axis=-1), kind(("N", 3)), plain(DType.I32, ())) == ("N",)
    assert shape_of(Gather(), kind(None), INDICES) is None
    assert shape_of(Gather(), kind((2,)), plain(DType.I64, None)) is None


@pytest.mark.parametrize(
    ("indices", "axis"),
    [([2, 0, -1], 1), (-3, 1), ([[0, 1], [1, -2]], 0), ([], 2), (np.int32([3]), -1)],
)
def test_gather_between_quantizers(indices: Any, axis: int) -> None:
    indices = np.asarray(indices, getattr(indices, "dtype", np.int64))
    check_mover("Gather", (2, 3, 4), [indices], axis=axis)


@pytest.mark.parametrize("opset", [10, 11, 13, 25])
def test_gather_at_every_opset(opset: int) -> None:
    check_mover("Gather", (2, 3), [np.array([1, 0, 1])], opset=opset)


def runtime_model(x: Any, out: Params | None, indices: Any = ("K",)) -> onnx.ModelProto:
    """Gather along axis 0 with indices that the caller gives."""
    build = Builder()
    data = build.operand(x, 0)
    moved = build.node("Gather", [data, build.feed("indices", indices, np.int64)])
    if out is None:
        build.output(build.node("Identity", [moved], name="y"), np.float32)
    else:
        build.output(build.quantize(moved, out, "y"), out.dtype)
    return build.model()


@pytest.mark.parametrize("out", [u8(0.1, 7), u8(0.3, 0), None])
def test_an_embedding_table_is_looked_up_in_codes(out: Params | None) -> None:
    table = np.random.default_rng(0).integers(0, 256, (7, 3)).astype(np.uint8)
    model = runtime_model(Held(table, u8(0.1, 7)), out)
    graph = check_same(model, {"indices": np.array([6, -7, 0, 3])})
    assert "qnn.gather" in names_of(graph)
    assert "onnx.Identity" not in names_of(graph)


@pytest.mark.parametrize("index", [2, -3, 2**40])
def test_an_index_out_of_range_is_a_run_failure(index: int) -> None:
    model = runtime_model(Fed("x", (2, 3), u8(0.1, 7), quantized=True), u8(0.1, 7))
    graph = check_same(model, {"x": np.eye(2, 3, dtype=np.uint8), "indices": np.array([1, -2])})
    with pytest.raises(RunFailure, match=r"gather[0-9]+_node.*out of bounds"):
        intonnx.compile(graph).run(
            {"x": np.eye(2, 3, dtype=np.uint8), "indices": np.array([index])}
        )


def test_no_indices_and_an_empty_axis() -> None:
    model = runtime_model(Fed("x", ("N", 3), u8(0.1, 7), quantized=True), u8(0.1, 7))
    check_same(model, {"x": np.zeros((0, 3), np.uint8), "indices": np.zeros(0, np.int64)})
    executable = intonnx.compile(intonnx.import_model(model))
    with pytest.raises(RunFailure):
        executable.run({"x": np.zeros((0, 3), np.uint8), "indices": np.zeros(1, np.int64)})


@pytest.mark.parametrize(("axis", "indices", "after"), [(0, [[1, 0]], 2), (2, [1], 1), (0, 1, 0)])
def test_per_axis_parameters_follow_their_axis(axis: int, indices: Any, after: int) -> None:
    before, out = per_axis(3, 1), per_axis(3, after)
    fed = Fed("x", (2, 3, 4), before, quantized=True)
    model = qdq_model("Gather", [fed, Held(np.array(indices))], out=out, attrs={"axis": axis})
    assert names_of(check_same(model)) == ["qnn.gather"]
    check_same(codes_model("Gather", (2, 3, 4), before, out, [indices], axis=axis))
    codes = np.arange(-12, 12, dtype=np.int8).reshape(2, 3, 4)
    found = check_constant("Gather", codes, before, [indices], axis=axis)
    assert found.params.axis == after


def test_parameters_for_each_index_are_refused() -> None:
    table = Held(np.arange(12, dtype=np.int8).reshape(4, 3), per_axis(4, 0))
    code, detail = refusal_of(runtime_model(table, None), "Gather")
    assert code == Code.PER_AXIS_INPUT
    assert "axis 0" in detail


def test_a_float_table_is_refused() -> None:
    code, _ = refusal_of(runtime_model(Held(np.ones((4, 3), np.float32)), s8(0.1)), "Gather")
    assert code == Code.INPUT_NOT_QUANTIZED
