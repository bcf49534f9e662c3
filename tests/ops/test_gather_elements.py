"""qnn.gather_elements and qnn.gather_nd: constraints, and both through every wing."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

import intonnx
from intonnx.ir.errors import RunFailure, TypeFailure
from intonnx.ir.ops.gather_elements import GatherElements, GatherNd
from intonnx.ir.types import DType, plain
from support.models import Array, Builder, Fed, Held, Params, qdq_model, s8, u8
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
from support.selections import refused


def indices(*shape: int | str) -> Any:
    return plain(DType.I64, shape)


# -- constraints ----------------------------------------------------------------------------------


def test_gather_elements_c1_the_axis() -> None:
    for axis, x in ((2, kind((2, 3))), (-3, kind((2, 3)))):
        with pytest.raises(TypeFailure, match=r"qnn\.gather_elements C1"):
            GatherElements(axis=axis).infer([x, indices(2, 3)])
    with pytest.raises(TypeFailure, match="C1"):
        GatherElements(axis=-1).infer([kind(None), plain(DType.I64, None)])


def test_gather_elements_c2_the_indices() -> None:
    for given in (plain(DType.F32, (2, 3)), kind((2, 3)), indices(2), indices(3, 3)):
        with pytest.raises(TypeFailure, match="C2"):
            GatherElements(axis=1).infer([kind((2, 3)), given])


def test_gather_elements_c3_per_axis_and_blocked() -> None:
    for x, given in (
        (kind((2, 3), axis=1, n=3), indices(2, 3)),
        (kind((2, 3), axis=0, n=2), indices(1, 3)),
        (kind((2, 3), axis=0, n=2), plain(DType.I64, None)),
        (blocked((2, 6), 0, 2), indices(2, 6)),
    ):
        with pytest.raises(TypeFailure, match="C3"):
            GatherElements(axis=1).infer([x, given])


def test_gather_nd_c1_the_indices() -> None:
    for given in (plain(DType.F32, (2, 1)), kind((2, 1)), indices()):
        with pytest.raises(TypeFailure, match=r"qnn\.gather_nd C1"):
            GatherNd().infer([kind((2, 3)), given])


def test_gather_nd_c2_the_rows_and_the_batch() -> None:
    for batch, shape in ((0, (2, 3)), (1, (2, 2)), (2, (2, 1)), (-1, (2, 1))):
        with pytest.raises(TypeFailure, match="C2"):
            GatherNd(batch_dims=batch).infer([kind((2, 3)), indices(*shape)])


def test_gather_nd_c3_per_axis_and_blocked() -> None:
    for x, given in (
        (kind((2, 3), axis=0, n=2), indices(2, 1)),
        (kind((2, 3), axis=1, n=3), indices(2, "K")),
        (blocked((2, 6), 1, 2), indices(2, 1)),
    ):
        with pytest.raises(TypeFailure, match="C3"):
            GatherNd().infer([x, given])


def test_the_result_shape() -> None:
    assert shape_of(GatherElements(axis=1), kind(("N", 3)), indices(2, 5)) == (2, 5)
    assert shape_of(GatherElements(axis=1), kind(None), indices(2, "K")) == (2, "K")
    assert shape_of(GatherNd(), kind(("N", 3, 4)), indices(5, 1)) == (5, 3, 4)
    assert shape_of(GatherNd(), kind(("N", 3, 4)), indices(3)) == ()
    assert shape_of(GatherNd(batch_dims=1), kind(("N", 3, 4)), indices("N", 7, 1)) == ("N", 7, 4)
    assert shape_of(GatherNd(), kind((2, 3)), indices(5, "K")) is None


# -- through every wing ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "axis"),
    [
        (np.full((2, 3, 4), -1), 1),
        ([[[0, 1, 0, 1]]], 0),
        ([[[3, -4]], [[0, 2]]], 2),
        ([[[3, -1]], [[0, 2]]], -1),
        (np.zeros((2, 0, 4), np.int64), 1),
        (np.ones((2, 7, 4), np.int32), 1),
    ],
)
def test_gather_elements_between_quantizers(given: Any, axis: int) -> None:
    given = np.asarray(given, getattr(given, "dtype", np.int64))
    check_mover("GatherElements", (2, 3, 4), [given], axis=axis)


@pytest.mark.parametrize(
    ("given", "batch"),
    [
        ([[0], [-1], [1]], 0),
        ([[0, 2], [-1, -3]], 0),
        ([[[0, 1, 3]], [[1, 2, -4]]], 0),
        ([1], 0),
        ([[0], [2]], 1),
        ([[[0, 1], [1, -1]], [[2, 2], [-3, 0]]], 1),
        ([[[0], [1], [2]], [[3], [-1], [0]]], 2),
        (np.zeros((0, 2), np.int64), 0),
    ],
)
def test_gather_nd_between_quantizers(given: Any, batch: int) -> None:
    check_mover("GatherND", (2, 3, 4), [np.asarray(given, np.int64)], batch_dims=batch)


@pytest.mark.parametrize("opset", [11, 13, 25])
def test_at_every_opset(opset: int) -> None:
    check_mover("GatherElements", (2, 3), [np.array([[1, 0, 1]])], opset=opset)
    if opset >= 12:
        check_mover("GatherND", (2, 3), [np.array([[1], [0]])], opset=opset, batch_dims=0)


def runtime_model(op_type: str, x: Any, out: Params, shape: Any) -> onnx.ModelProto:
    """Indices that the caller gives."""
    build = Builder()
    data = build.operand(x, 0)
    moved = build.node(op_type, [data, build.feed("indices", shape, np.int64)])
    build.output(build.quantize(moved, out, "y"), out.dtype)
    return build.model()


@pytest.mark.parametrize(
    ("op_type", "shape", "given"),
    [
        ("GatherElements", ("K", 3), [[1, -2, 0], [0, 0, 1], [-1, 1, 1]]),
        ("GatherND", ("K", 2), [[1, -2], [0, 2]]),
    ],
)
@pytest.mark.parametrize("held", [False, True])
def test_indices_of_run_time(op_type: str, shape: Any, given: Any, held: bool) -> None:
    codes = np.arange(6, dtype=np.uint8).reshape(2, 3)
    params = u8(0.1, 7)
    x: Any = Held(codes, params) if held else Fed("x", (2, 3), params, quantized=True)
    graph = intonnx.import_model(runtime_model(op_type, x, params, shape))
    feeds: dict[str, Array] = {} if held else {"x": codes}
    check_same(runtime_model(op_type, x, params, shape), {**feeds, "indices": np.array(given)})
    bad = np.array(given)
    bad[0, 0] = 2
    with pytest.raises(RunFailure, match="out of bounds"):
        intonnx.compile(graph).run({**feeds, "indices": bad})


def test_per_axis_parameters_follow_their_axis() -> None:
    given = np.array([[[1], [0], [1]]])
    before = per_axis(3, 1)
    fed = Fed("x", (2, 3, 1), before, quantized=True)
    model = qdq_model("GatherElements", [fed, Held(given)], out=before, attrs={"axis": 0})
    assert names_of(check_same(model)) == ["qnn.gather_elements"]


@pytest.mark.parametrize(
    ("rows", "batch", "before", "after"),
    [
        ([[1], [0], [1]], 0, per_axis(3, 1), per_axis(3, 1)),
        ([[[1]], [[0]]], 0, per_axis(4, 2), per_axis(4, 3)),
        ([[1, 2], [0, 0]], 0, per_axis(4, 2), per_axis(4, 1)),
        ([[1], [0]], 1, per_axis(2, 0), per_axis(2, 0)),
    ],
)
def test_per_axis_parameters_of_slices(
    rows: Any, batch: int, before: Params, after: Params
) -> None:
    operands = [Fed("x", (2, 3, 4), before, quantized=True), Held(np.array(rows))]
    model = qdq_model("GatherND", operands, out=after, attrs={"batch_dims": batch})
    assert names_of(check_same(model)) == ["qnn.gather_nd"]


def test_constant_codes_are_moved_at_import() -> None:
    codes = np.arange(-6, 6, dtype=np.int8).reshape(2, 2, 3)
    found = check_constant("GatherND", codes, per_axis(3, 2), [np.array([[1], [0], [1]])])
    assert found.params.axis == 2
    check_constant("GatherElements", codes, s8(0.1, 3), [np.ones((2, 2, 3), np.int64)])


def test_codes_that_the_model_moves_itself() -> None:
    model = codes_model("GatherND", (2, 3), u8(0.1, 3), u8(0.1, 3), [np.array([[1], [0]])])
    assert "qnn.gather_nd" in names_of(check_same(model))


def test_refusals() -> None:
    held = Held(np.array([[0, 1, 1]]))
    model = qdq_model("GatherElements", [Fed("x", (2, 3)), held])
    refused(model, "GatherElements", "input-not-quantized", "'x' arrives as float")
    model = qdq_model("GatherElements", [Fed("x", (2, 3), per_axis(2, 0)), held])
    refused(model, "GatherElements", "per-axis-input", "per tensor")
