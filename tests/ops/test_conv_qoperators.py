"""QLinearConv and ConvInteger against Python integers and onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import intonnx
from support import bigint, strategies
from support.models import Builder, Fed, qoperator_model
from support.products import RUNTIMES, ends
from support.runtime import run_onnxruntime
from support.strategies import ConvCase
from support.wings import apart, refusal_of

RNG = np.random.default_rng(0)
U8, S8 = np.uint8, np.int8


def qlinear_model(case: ConvCase, w: Any, *extra: Any) -> onnx.ModelProto:
    xp, wp, op = case.x_params, case.w_params, case.out
    parts = [Fed("x", case.x.shape, dtype=xp.dtype), xp.scale_array, xp.zero_array, w,
             wp.scale_array, wp.zero_array, op.scale_array, op.zero_array, case.bias]  # fmt: skip
    return qoperator_model("QLinearConv", [*parts, *extra], op.dtype, attrs=case.geometry)


@settings(max_examples=40)
@given(case=strategies.conv_cases(), constant=st.booleans())
def test_qlinear_conv_is_exact(case: ConvCase, constant: bool) -> None:
    fed = Fed("w", case.w.shape, dtype=case.w.dtype)
    model = qlinear_model(case, case.w if constant else fed)
    inputs = {"x": case.x} | ({} if constant else {"w": case.w})
    wanted = bigint.qlinear_conv(
        case.x, case.x_params.scale_array, case.x_params.zero_array,
        case.w, case.w_params.scale_array, case.w_params.zero_array,
        case.out.scale_array, case.out.zero_array, case.bias, **case.geometry,
    )  # fmt: skip
    graph = intonnx.import_model(model)
    assert intonnx.coverage(graph).float == 0
    found = intonnx.compile(graph).run(inputs)
    apart(found, {"y": wanted}, 0)
    for runtime in RUNTIMES:
        exported = intonnx.to_onnx(graph, runtime=runtime)
        for optimized in (False, True):
            apart(run_onnxruntime(exported, inputs, optimized=optimized), found, 0)
        apart(intonnx.compile(intonnx.import_model(exported)).run(inputs), found, 0)


def test_qlinear_conv_exports_as_itself() -> None:
    parts = [Fed("x", (1, 2, 5, 5), dtype=U8), np.float32(0.5), U8(3),
             np.ones((2, 2, 3, 3), S8), np.ones(2, np.float32), np.zeros(2, S8),
             np.float32(2), U8(9), np.ones(2, np.int32)]  # fmt: skip
    model = qoperator_model("QLinearConv", parts, U8, attrs={"strides": [2, 1]})
    graph = intonnx.import_model(model)
    (node,) = intonnx.to_onnx(graph).graph.node
    assert (node.op_type, list(node.input)[:1], list(node.output)) == ("QLinearConv", ["x"], ["y"])


@settings(max_examples=30)
@given(
    case=strategies.conv_cases(),
    zeros=st.sampled_from(["none", "scalar", "run time"]),
    constant=st.booleans(),
)
def test_conv_integer_is_exact(case: ConvCase, zeros: str, constant: bool) -> None:
    x, w = case.x, case.w
    zx, zw = case.x_params.zero_array, case.w_params.zero_array.reshape(-1)[0]
    inputs = {"x": x} | ({} if constant else {"w": w})
    fed: list[Any] = [Fed("x", x.shape, dtype=x.dtype)]
    fed.append(w if constant else Fed("w", w.shape, dtype=w.dtype))
    if zeros == "run time":
        fed += [Fed("zx", (), dtype=x.dtype), Fed("zw", (), dtype=w.dtype)]
        inputs |= {"zx": zx, "zw": np.asarray(zw)}
    else:
        fed += [None, None] if zeros == "none" else [zx, zw]
    model = qoperator_model("ConvInteger", fed, np.int32, attrs=case.geometry)
    given_zeros = (0, 0) if zeros == "none" else (zx, zw)
    wanted = bigint.conv_accumulator(x, w, *given_zeros, **case.geometry).astype(np.int32)
    graph = intonnx.import_model(model)
    assert intonnx.coverage(graph).float == 0
    found = intonnx.compile(graph).run(inputs)
    apart(found, {"y": wanted}, 0)
    exported = intonnx.to_onnx(graph)
    for optimized in (False, True):
        apart(run_onnxruntime(exported, inputs, optimized=optimized, exact=False), found, 0)
    apart(intonnx.compile(intonnx.import_model(exported)).run(inputs), found, 0)


def test_conv_integer_with_a_zero_point_for_each_channel() -> None:
    x, w, zw = ends(RNG, (2, 3, 5, 5), U8), ends(RNG, (4, 3, 2, 2), S8), ends(RNG, (4,), S8)
    parts = [Fed("x", x.shape, dtype=U8), w, U8(7), zw]
    model = qoperator_model("ConvInteger", parts, np.int32)
    found = intonnx.compile(intonnx.import_model(model)).run({"x": x})
    apart(found, {"y": bigint.conv_accumulator(x, w, 7, zw).astype(np.int32)}, 0)


def test_a_scale_that_the_caller_may_override_is_never_folded() -> None:
    parts = [Fed("x", (1, 2, 5, 5), dtype=U8), Fed("s", (), dtype=np.float32), U8(3),
             np.ones((2, 2, 3, 3), U8), np.float32(1), U8(0), np.float32(2), U8(9)]  # fmt: skip
    model = qoperator_model("QLinearConv", parts, U8)
    assert refusal_of(model, "QLinearConv")[0] == "runtime-parameters"


@pytest.mark.parametrize("rank", [4, "r"])
def test_an_unknown_rank_is_no_error(rank: int | str) -> None:
    build = Builder()
    shape = build.feed("shape", [rank], np.int64)
    x = build.node("Reshape", [build.feed("x", (50,), U8), shape])
    w = build.constant("w", ends(np.random.default_rng(1), (2, 2, 3, 3), U8))
    build.output(build.node("ConvInteger", [x, w], name="y"), np.int32)
    model = build.model()
    graph = intonnx.import_model(model)
    refusal = graph.producers["y"].refusal
    assert (refusal is None) == (rank == 4)
    inputs = {"x": ends(RNG, (50,), U8), "shape": np.array([1, 2, 5, 5])}
    found = intonnx.compile(graph).run(inputs)
    apart(found, run_onnxruntime(model, inputs, optimized=False), 0)


@pytest.mark.parametrize("channels_last", [0, 1])
@pytest.mark.parametrize("rank", [1, 2])
@pytest.mark.parametrize("groups", [1, 2])
def test_qlinear_conv_of_com_microsoft(channels_last: int, rank: int, groups: int) -> None:
    rng = np.random.default_rng(rank)
    sizes = (7, 6)[:rank]
    x = rng.integers(0, 256, (2, *sizes, 4) if channels_last else (2, 4, *sizes)).astype(np.uint8)
    w = rng.integers(0, 256, (6, 4 // groups, *(3, 2)[:rank])).astype(np.uint8)
    parts: list[Any] = [
        Fed("x", x.shape, dtype=np.uint8), np.float32(0.02), np.uint8(7),
        w, rng.uniform(0.005, 0.02, 6).astype(np.float32), np.full(6, 120, np.uint8),
        np.float32(0.9), np.uint8(100), rng.integers(-900, 900, 6).astype(np.int32),
    ]  # fmt: skip
    attrs = {"channels_last": channels_last, "pads": [1] * (2 * rank), "strides": [2] * rank,
             "group": groups}  # fmt: skip
    model = qoperator_model("QLinearConv", parts, np.uint8, attrs=attrs, domain="com.microsoft")
    graph = intonnx.import_model(model)
    assert intonnx.coverage(graph).float == 0
    found = intonnx.compile(graph).run({"x": x})
    apart(found, run_onnxruntime(model, {"x": x}, optimized=False), 0)
    for runtime in ("onnxruntime", "standard"):
        exported = intonnx.to_onnx(graph, runtime=runtime)
        apart(run_onnxruntime(exported, {"x": x}, optimized=True), found, 0)
