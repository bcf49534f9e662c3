"""qnn.storage_cast: where plain integers become quantized values, and the other way round."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings

import intonnx
from intonnx.ir.graph import Graph, Node
from intonnx.ir.ops.storage_cast import StorageCast
from intonnx.ir.types import DType, QuantParams, TensorType, plain, quantized
from support import strategies
from support.models import Array, Builder, Params, s8, s32, u8
from support.runtime import run_onnxruntime
from support.wings import Arrays, apart, check_model

U8 = QuantParams(storage=DType.U8, scale=0.5, zero_point=3)
AXIS = QuantParams(storage=DType.U8, scale=[1, 2, 3], zero_point=[0, 1, 2], axis=1)
CODES = np.arange(256, dtype=np.uint8)


@pytest.mark.parametrize(
    ("out", "x", "result"),
    [
        (U8, plain(DType.U8, ("N",)), quantized(U8, ("N",))),
        (AXIS, quantized(U8, (2, 3)), quantized(AXIS, (2, 3))),
        (None, quantized(AXIS, (2, 3)), plain(DType.U8, (2, 3))),
        (None, plain(DType.I32, None), plain(DType.I32, None)),
    ],
)
def test_result_types(out: QuantParams | None, x: TensorType, result: TensorType) -> None:
    assert StorageCast(out=out).infer([x]) == (result,)


@pytest.mark.parametrize(
    ("out", "x"),
    [
        (U8, plain(DType.I8, (2,))),
        (U8, plain(DType.F32, (2,))),
        (None, plain(DType.F32, (2,))),
        (None, plain(DType.BOOL, (2,))),
    ],
)
def test_c1_holds_integers_of_the_storage_type(out: QuantParams | None, x: TensorType) -> None:
    with pytest.raises(intonnx.TypeFailure, match=r"qnn\.storage_cast C1"):
        StorageCast(out=out).infer([x])


@pytest.mark.parametrize("shape", [(3,), (2, 4)])
def test_c2_parameters_fit_the_axis(shape: tuple[int, ...]) -> None:
    with pytest.raises(intonnx.TypeFailure, match=r"qnn\.storage_cast C2"):
        StorageCast(out=AXIS).infer([plain(DType.U8, shape)])


def of_types(*kinds: TensorType) -> Graph:
    """A chain of casts from the input `v0`; every value is an output."""
    names = [f"v{i}" for i in range(len(kinds))]
    nodes = [
        Node(StorageCast(out=kind.quant), (names[i],), (names[i + 1],))
        for i, kind in enumerate(kinds[1:])
    ]
    return Graph("casts", ("v0",), tuple(names), tuple(nodes), dict(zip(names, kinds, strict=True)))


def test_casts_keep_the_codes_and_their_names() -> None:
    kinds = [quantized(U8, (256,)), plain(DType.U8, (256,)), quantized(U8, (256,))]
    graph = of_types(*kinds)
    for numerics in ("qlinear", "qdq"):
        found = intonnx.compile(graph, numerics=numerics).run({"v0": CODES})
        apart(found, dict.fromkeys(("v0", "v1", "v2"), CODES), 0)
    exported = intonnx.to_onnx(graph)
    apart(run_onnxruntime(exported, {"v0": CODES}, optimized=False), found, 0)


def test_codes_that_are_fed_need_no_operator() -> None:
    build = Builder()
    build.feed("x", (256,), np.uint8)
    build.output(build.dequantize("x", u8(0.1, 3), "y"), np.float32)
    graph = check_model(build.model(), {"x": CODES})
    assert [node.op.name for node in graph.nodes] == ["qnn.storage_cast", "qnn.dequantize"]
    exported = intonnx.to_onnx(graph)
    assert [node.op_type for node in exported.graph.node] == ["DequantizeLinear"]


def read_twice(first: Params, second: Params, codes: Array) -> tuple[onnx.ModelProto, Arrays]:
    """One tensor of integers that two dequantizers read, each with its own parameters."""
    build = Builder()
    build.feed("x", codes.shape, codes.dtype)
    for name, params in (("y", first), ("z", second)):
        build.output(build.dequantize("x", params, name), np.float32)
    return build.model(), {"x": codes}


@given(strategies.binary_cases(dtype=np.int8))
@settings(max_examples=20)
def test_one_tensor_with_two_meanings(case: strategies.BinaryCase) -> None:
    check_model(*read_twice(case.a_params, case.b_params, case.a))


def test_quantized_by_one_scale_and_read_by_another() -> None:
    build = Builder()
    build.feed("x", (600,), np.float32)
    codes = build.quantize("x", u8(0.1, 3), "q")
    build.output(build.dequantize(codes, u8(0.2, 7), "y"), np.float32)
    build.output(build.dequantize(codes, u8(0.1, 3), "z"), np.float32)
    x = (np.arange(600) / 20 - 3).astype(np.float32)
    check_model(build.model(), {"x": x}, kernel=False)


def test_codes_that_an_integer_operator_makes() -> None:
    build = Builder()
    build.feed("x", (5, 8), np.uint8)
    weights = build.constant("w", np.arange(24, dtype=np.uint8).reshape(8, 3))
    sums = build.node("MatMulInteger", ["x", weights])
    build.output(build.quantize(build.dequantize(sums, s32(0.01)), u8(0.7, 3), "y"), np.uint8)
    x = np.random.default_rng(0).integers(0, 256, (5, 8)).astype(np.uint8)
    check_model(build.model(), {"x": x})


def test_a_fed_tensor_that_is_an_output_too() -> None:
    build = Builder()
    build.feed("x", (256,), np.uint8)
    real = build.dequantize("x", u8(0.1, 3))
    build.output(build.quantize(real, u8(0.1, 3), "y"), np.uint8)
    build.output(build.quantize(real, s8(0.1, 3), "z"), np.int8)
    check_model(build.model(), {"x": CODES})


@pytest.mark.parametrize("form", ["qlinear", "qdq"])
def test_codes_that_a_kept_operator_reads(form: Any) -> None:
    """An operator that stays ONNX names its operands itself, so the name has to be there."""
    build = Builder()
    build.feed("x", (4,), np.float32)
    codes = build.quantize("x", u8(0.1, 3), "q")
    build.output(build.node("Cast", [codes], name="wide", to=onnx.TensorProto.INT64), np.int64)
    build.output(build.dequantize(codes, u8(0.2, 7), "y"), np.float32)
    model, x = build.model(), {"x": np.array([0, 0.3, 5, -9], np.float32)}
    graph = intonnx.import_model(model)
    wanted = run_onnxruntime(model, x, optimized=False)
    apart(intonnx.compile(graph).run(x), wanted, 0)
    apart(run_onnxruntime(intonnx.to_onnx(graph, form=form), x, optimized=False), wanted, 0)
