"""qnn.expand and qnn.tile: constraints, and Expand and Tile through every wing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import intonnx
from intonnx.ir.errors import RunFailure, TypeFailure
from intonnx.ir.ops.expand import Expand, Tile
from intonnx.ir.reasons import Code
from intonnx.ir.types import DType, plain
from support.models import Builder, Fed, Held, qdq_model, u8
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
from support.wings import refusal_of

SIZES = plain(DType.I64, (2,))


def test_expand_c1_one_target() -> None:
    for op, operands in (
        (Expand(), [kind((2,))]),
        (Expand(shape=(2,)), [kind((2,)), SIZES]),
        (Expand(shape=(-1,)), [kind((2,))]),
    ):
        with pytest.raises(TypeFailure, match=r"qnn\.expand C1"):
            op.infer(operands)


def test_expand_c2_the_shapes_broadcast() -> None:
    with pytest.raises(TypeFailure, match="C2"):
        Expand(shape=(3,)).infer([kind((2,))])


def test_expand_c3_the_computed_target() -> None:
    for bad in (plain(DType.F32, (2,)), plain(DType.I64, (2, 1))):
        with pytest.raises(TypeFailure, match="C3"):
            Expand().infer([kind((2,)), bad])


def test_expand_c4_per_axis_and_blocked() -> None:
    for x, op in (
        (kind((1, 3), axis=0, n=1), Expand(shape=(2, 3))),
        (kind(None, axis=0, n=3), Expand(shape=(2, 3))),
        (blocked((2, 6), 1, 3), Expand(shape=(1, 2, 6))),
    ):
        with pytest.raises(TypeFailure, match="C4"):
            op.infer([x])


def test_tile_c1_one_list_of_repeats() -> None:
    for op, operands in (
        (Tile(), [kind((2,))]),
        (Tile(repeats=(2,)), [kind((2,)), SIZES]),
        (Tile(repeats=(-1,)), [kind((2,))]),
    ):
        with pytest.raises(TypeFailure, match=r"qnn\.tile C1"):
            op.infer(operands)


def test_tile_c2_one_repeat_an_axis() -> None:
    for op, operands in ((Tile(repeats=(2, 2)), [kind((2,))]), (Tile(), [kind((2,)), SIZES])):
        with pytest.raises(TypeFailure, match=r"qnn\.tile C2"):
            op.infer(operands)


def test_tile_c3_the_computed_repeats() -> None:
    with pytest.raises(TypeFailure, match=r"qnn\.tile C3"):
        Tile().infer([kind((2, 2)), plain(DType.F32, (2,))])


def test_tile_c4_per_axis_and_blocked() -> None:
    for x, op, more in (
        (kind((2, 3), axis=1, n=3), Tile(repeats=(1, 2)), []),
        (kind((2, 3), axis=1, n=3), Tile(), [SIZES]),
        (blocked((2, 6), 1, 3), Tile(repeats=(1, 1)), []),
    ):
        with pytest.raises(TypeFailure, match=r"qnn\.tile C4"):
            op.infer([x, *more])


def test_the_result_shapes() -> None:
    assert shape_of(Expand(shape=(2, 1, 4)), kind(("N", 1))) == (2, "N", 4)
    assert shape_of(Expand(), kind(("N", 3)), SIZES) == ("?", 3)
    assert shape_of(Expand(), kind((3,)), plain(DType.I64, None)) is None
    assert shape_of(Tile(repeats=(1, 2, 0)), kind(("N", 3, 4))) == ("N", 6, 0)
    assert shape_of(Tile(repeats=(2,)), kind(("N",))) == ("?",)
    assert shape_of(Tile(), kind(("N", 3)), SIZES) == ("?", "?")
    assert shape_of(Tile(repeats=(2, 2)), kind(None)) == ("?", "?")


@pytest.mark.parametrize("target", [[2, 1, 4, 6], [1], [3, 1, 1, 1, 1], [5, 1]])
def test_expand_between_quantizers(target: list[int]) -> None:
    shape = (1, 3, 1, 6) if target[0] != 2 else (2, 1, 4, 1)
    check_mover("Expand", shape, [target])


@pytest.mark.parametrize("repeats", [[1, 2, 1, 3], [1, 1, 1, 1], [2, 0, 1, 1]])
def test_tile_between_quantizers(repeats: list[int]) -> None:
    check_mover("Tile", (2, 3, 1, 2), [repeats])


@pytest.mark.parametrize("opset", [10, 13, 25])
def test_expand_and_tile_at_every_opset(opset: int) -> None:
    check_mover("Expand", (1, 3), [[2, 3]], opset=opset)
    check_mover("Tile", (1, 3), [[2, 3]], opset=opset)


@pytest.mark.parametrize("op_type", ["Expand", "Tile"])
def test_sizes_computed_at_run_time(op_type: str) -> None:
    build = Builder()
    x = build.operand(Fed("x", ("N", 1), u8(0.1, 4), quantized=True), 0)
    moved = build.node(op_type, [x, build.feed("sizes", [2], np.int64)])
    build.output(build.quantize(moved, u8(0.1, 4), "y"), np.uint8)
    codes = np.array([[7], [9]], np.uint8)
    graph = check_same(build.model(), {"x": codes, "sizes": np.array([2, 3])})
    assert names_of(graph) == [f"qnn.{op_type.lower()}"]
    with pytest.raises(RunFailure):
        intonnx.compile(graph).run({"x": codes, "sizes": np.array([3, -1])})


@pytest.mark.parametrize(
    ("op_type", "sizes", "after"), [("Expand", [4, 1, 3, 1], 2), ("Tile", [2, 1, 3], 1)]
)
def test_per_axis_parameters_follow_their_axis(op_type: str, sizes: list[int], after: int) -> None:
    before, out = per_axis(3, 1), per_axis(3, after)
    fed = Fed("x", (1, 3, 2), before, quantized=True)
    model = qdq_model(op_type, [fed, Held(np.array(sizes))], out=out)
    assert names_of(check_same(model)) == [f"qnn.{op_type.lower()}"]
    check_same(codes_model(op_type, (1, 3, 2), before, out, [sizes]))
    codes = np.arange(-3, 3, dtype=np.int8).reshape(1, 3, 2)
    assert check_constant(op_type, codes, before, [sizes]).params.axis == after


@pytest.mark.parametrize(("op_type", "sizes"), [("Expand", [2, 1, 9]), ("Tile", [1, 1, 9])])
def test_a_constant_that_would_grow_too_large_is_repeated_at_run_time(
    op_type: str, sizes: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from intonnx.importer import made_constants
    from intonnx.importer.qdq import codes

    monkeypatch.setattr(codes, "MAX_FOLDED_ELEMENTS", 8)
    monkeypatch.setattr(made_constants, "_LARGEST", 8)
    build = Builder()
    x = build.operand(Held(np.array([[[7]], [[9]]], np.uint8), u8(0.1, 4)), 0)
    moved = build.node(op_type, [x, build.constant("sizes", np.array(sizes))])
    build.output(build.quantize(moved, u8(0.1, 4), "y"), np.uint8)
    assert names_of(check_same(build.model(), {})) == [f"qnn.{op_type.lower()}"]


def test_a_repeated_axis_with_parameters_is_refused() -> None:
    fed = Fed("x", (2, 3), per_axis(3, 1), quantized=True)
    model = qdq_model("Tile", [fed, Held(np.array([1, 2]))])
    assert refusal_of(model, "Tile")[0] == Code.PER_AXIS_INPUT


def test_the_expand_kernel_copies_nothing() -> None:
    assert shares_memory(Expand(shape=(4, 2, 3)), (2, 1))
