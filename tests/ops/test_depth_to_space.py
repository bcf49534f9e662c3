"""qnn.depth_to_space and qnn.space_to_depth: constraints, and their operators everywhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import intonnx
from intonnx.ir.errors import TypeFailure
from intonnx.ir.ops.depth_to_space import DepthToSpace, SpaceToDepth
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
    run_kernel,
    shape_of,
)
from support.runtime import run_onnxruntime
from support.wings import refusal_of

OPS = [DepthToSpace, SpaceToDepth]


@pytest.mark.parametrize("op", OPS)
def test_c1_rank_4_and_a_block(op: Any) -> None:
    for size, x in ((2, kind((4, 2, 2))), (0, kind((1, 4, 2, 2))), (-1, kind(None))):
        with pytest.raises(TypeFailure, match="C1"):
            op(blocksize=size).infer([x])


def test_c2_whole_blocks() -> None:
    with pytest.raises(TypeFailure, match=r"qnn\.depth_to_space C2"):
        DepthToSpace(blocksize=2).infer([kind((1, 6, 2, 2))])
    for shape in ((1, 4, 3, 2), (1, 4, 2, 3)):
        with pytest.raises(TypeFailure, match=r"qnn\.space_to_depth C2"):
            SpaceToDepth(blocksize=2).infer([kind(shape)])


@pytest.mark.parametrize("op", OPS)
def test_c3_per_axis_and_blocked(op: Any) -> None:
    for axis in (1, 2, 3):
        with pytest.raises(TypeFailure, match="C3"):
            op(blocksize=2).infer([kind((2, 4, 4, 4), axis=axis, n=4)])
    with pytest.raises(TypeFailure, match="C3"):
        op(blocksize=2).infer([blocked((2, 4, 4, 4), 0, 2)])
    assert op(blocksize=2).infer([kind((2, 4, 4, 4), axis=0, n=2)])[0].params.axis == 0


def test_the_result_shapes() -> None:
    assert shape_of(DepthToSpace(blocksize=2), kind(("N", 8, "H", 3))) == ("N", 2, "?", 6)
    assert shape_of(SpaceToDepth(blocksize=2), kind(("N", 2, "H", 6))) == ("N", 8, "?", 3)
    assert shape_of(DepthToSpace(blocksize=1), kind(("N", "C", "H", 3))) == ("N", "C", "H", 3)
    assert shape_of(DepthToSpace(blocksize=2), kind(None)) == ("?",) * 4


@pytest.mark.parametrize("mode", ["DCR", "CRD", None])
def test_depth_to_space_between_quantizers(mode: str | None) -> None:
    attributes = {} if mode is None else {"mode": mode}
    check_mover("DepthToSpace", (2, 8, 3, 2), blocksize=2, **attributes)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_space_to_depth_between_quantizers(size: int) -> None:
    check_mover("SpaceToDepth", (2, 2, 6, 12), blocksize=size)


@pytest.mark.parametrize("opset", [10, 11, 13, 25])
def test_at_every_opset(opset: int) -> None:
    check_mover("DepthToSpace", (1, 8, 1, 2), opset=opset, blocksize=2)
    check_mover("SpaceToDepth", (1, 2, 4, 2), opset=opset, blocksize=2)


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
def test_channels_last_memory_stays(mode: Any) -> None:
    x = np.arange(2 * 12 * 4 * 6).astype(np.uint8).reshape(2, 12, 4, 6)
    last = np.ascontiguousarray(x.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
    for op in (DepthToSpace(blocksize=2, mode=mode), SpaceToDepth(blocksize=2)):
        (wanted,), (found,) = run_kernel(op, x), run_kernel(op, last)
        np.testing.assert_array_equal(found, wanted)
        assert found.transpose(0, 2, 3, 1).flags.c_contiguous
        assert wanted.flags.c_contiguous


def test_space_to_depth_undoes_depth_to_space() -> None:
    x = np.arange(2 * 12 * 4 * 6).astype(np.uint8).reshape(2, 12, 4, 6)
    (spread,) = run_kernel(DepthToSpace(blocksize=2), x)
    np.testing.assert_array_equal(run_kernel(SpaceToDepth(blocksize=2), spread)[0], x)


def test_a_symbolic_image() -> None:
    fed = Fed("x", ("N", 4, "H", "W"), u8(0.1, 4), quantized=True)
    for op_type in ("DepthToSpace", "SpaceToDepth"):
        model = qdq_model(op_type, [fed], out=u8(0.1, 4), attrs={"blocksize": 2})
        for shape in ((1, 4, 2, 6), (0, 4, 2, 2)):
            x = np.arange(np.prod(shape)).astype(np.uint8).reshape(shape)
            check_same(model, {"x": x})


def test_parameters_along_the_batch_stay() -> None:
    before = per_axis(2, 0)
    fed = Fed("x", (2, 4, 2, 2), before, quantized=True)
    for op_type in ("DepthToSpace", "SpaceToDepth"):
        graph = check_same(qdq_model(op_type, [fed], out=before, attrs={"blocksize": 2}))
        assert len(names_of(graph)) == 1
        check_same(codes_model(op_type, (2, 4, 2, 2), before, before, blocksize=2))
        codes = np.arange(32, dtype=np.int8).reshape(2, 4, 2, 2)
        assert check_constant(op_type, codes, before, blocksize=2).params.axis == 0


def test_parameters_along_the_channels_are_refused() -> None:
    fed = Fed("x", (2, 4, 2, 2), per_axis(4, 1), quantized=True)
    model = qdq_model("DepthToSpace", [fed], attrs={"blocksize": 2})
    assert refusal_of(model, "DepthToSpace")[0] == Code.PER_AXIS_INPUT


def test_accumulators_are_moved_where_no_kernel_takes_them() -> None:
    build = Builder()
    w = np.random.default_rng(0).integers(-9, 9, (4, 3, 1, 1)).astype(np.int8)
    x = build.operand(Fed("x", (1, 3, 5, 6), u8(0.02, 9)), 0)
    conv = build.node("Conv", [x, build.operand(Held(w, s8(0.1)), 1)])
    moved = build.node("DepthToSpace", [conv], blocksize=2)
    build.output(build.node("Neg", [moved], name="y"), np.float32)
    model = build.model()
    graph = intonnx.import_model(model)
    assert names_of(graph) == ["qnn.conv2d", "qnn.depth_to_space", "onnx.Neg"]
    inputs = run_inputs(model)
    wanted = run_onnxruntime(model, inputs, optimized=False)["y"]
    found = intonnx.compile(graph).run(inputs)["y"]
    np.testing.assert_allclose(found, wanted, 1e-5, 1e-6)
    exported = run_onnxruntime(intonnx.to_onnx(graph), inputs, optimized=False)["y"]
    np.testing.assert_array_equal(exported, found)
