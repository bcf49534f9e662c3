"""QLinearMatMul, QGemm and MatMulInteger against Python integers and onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import intonnx
from support import bigint, strategies
from support.models import Array, Builder, Fed, qoperator_model
from support.products import ends
from support.runtime import run_onnxruntime
from support.strategies import MatmulCase
from support.wings import apart, refusal_of

RNG = np.random.default_rng(0)


# -- QLinearMatMul and QGemm ----------------------------------------------------------------------


def qlinear_model(case: MatmulCase, *, constant: bool) -> tuple[onnx.ModelProto, dict[str, Array]]:
    ap, bp, op = case.a_params, case.b_params, case.out
    a = Fed("a", case.a.shape, dtype=case.a.dtype)
    b = case.b if constant else Fed("b", case.b.shape, dtype=case.b.dtype)
    parts = [a, ap.scale_array, ap.zero_array, b, bp.scale_array, bp.zero_array,
             op.scale_array, op.zero_array]  # fmt: skip
    model = qoperator_model("QLinearMatMul", parts, op.dtype)
    return model, {"a": case.a} | ({} if constant else {"b": case.b})


@settings(max_examples=40)
@given(case=strategies.matmul_cases(), constant=st.booleans())
def test_qlinear_matmul_is_exact(case: MatmulCase, constant: bool) -> None:
    model, inputs = qlinear_model(case, constant=constant)
    wanted = bigint.qlinear_matmul(
        case.a, case.a_params.scale_array, case.a_params.zero_array,
        case.b, case.b_params.scale_array, case.b_params.zero_array,
        case.out.scale_array, case.out.zero_array,
    )  # fmt: skip
    graph = intonnx.import_model(model)
    assert intonnx.coverage(graph).float == 0
    found = intonnx.compile(graph).run(inputs)
    apart(found, {"y": wanted}, 0)
    for runtime in ("onnxruntime", "standard"):
        exported = intonnx.to_onnx(graph, runtime=runtime)
        for optimized in (False, True):
            apart(run_onnxruntime(exported, inputs, optimized=optimized), found, 0)
        apart(intonnx.compile(intonnx.import_model(exported)).run(inputs), found, 0)


C_SHAPES = [(), (1,), (4,), (1, 4), (3, 1), (3, 4), None]


@settings(max_examples=40)
@given(
    seed=st.integers(0, 999),
    c_shape=st.sampled_from(C_SHAPES),
    types=st.sampled_from([(np.uint8, np.uint8), (np.uint8, np.int8), (np.int8, np.int8)]),
    transposed=st.tuples(st.booleans(), st.booleans()),
    alpha=st.sampled_from([1.0, 0.5, 0.3]),
    options=st.tuples(st.booleans(), st.booleans(), st.booleans()),
)
def test_qgemm_is_exact(
    seed: int, c_shape: tuple[int, ...] | None, types: Any, transposed: tuple[bool, bool],
    alpha: float, options: tuple[bool, bool, bool],
) -> None:  # fmt: skip
    rng = np.random.default_rng(seed)
    per_column, float_result, constant = options
    trans_a, trans_b = transposed
    a_type, b_type = types
    a, b = ends(rng, (5, 3) if trans_a else (3, 5), a_type), ends(rng, (5, 4), b_type)
    b = b.T.copy() if trans_b else b
    sb = rng.uniform(0.001, 0.1, 4 if per_column else ()).astype(np.float32)
    zb = ends(rng, sb.shape, b_type)
    c = None if c_shape is None else rng.integers(-50_000, 50_000, c_shape).astype(np.int32)
    sa, za, sy, zy = np.float32(0.02), ends(rng, (), a_type), np.float32(0.7), ends(rng, (), a_type)
    y: list[Any] = [] if float_result else [sy, zy]
    fed: list[Any] = [Fed("a", a.shape, dtype=a_type), sa, za]
    fed += [b if constant else Fed("b", b.shape, dtype=b_type), sb, zb, c, *y]
    attrs = {"alpha": alpha, "transA": int(trans_a), "transB": int(trans_b)}
    model = qoperator_model("QGemm", fed, np.float32 if float_result else a_type, attrs=attrs)
    wanted = bigint.qgemm(
        a, sa, za, b, sb, zb, c, *y, alpha=alpha, trans_a=trans_a, trans_b=trans_b
    )
    graph = intonnx.import_model(model)
    assert intonnx.coverage(graph).float == 0
    inputs = {"a": a} | ({} if constant else {"b": b})
    found = intonnx.compile(graph).run(inputs)
    apart(found, {"y": wanted}, 0)
    for runtime in ("onnxruntime", "standard"):
        exported = intonnx.to_onnx(graph, runtime=runtime)
        apart(run_onnxruntime(exported, inputs, optimized=False), found, 0)
        apart(run_onnxruntime(exported, inputs, optimized=True), found, 0)
    again = intonnx.import_model(intonnx.to_onnx(graph))
    apart(intonnx.compile(again).run(inputs), found, 0)


def test_negative_alpha_of_qgemm_is_kept() -> None:
    parts = [Fed("a", (2, 3), dtype=np.uint8), np.float32(1), np.uint8(0),
             np.ones((3, 4), np.uint8), np.float32(1), np.uint8(0)]  # fmt: skip
    model = qoperator_model("QGemm", parts, np.float32, attrs={"alpha": -1.0})
    assert refusal_of(model, "QGemm")[0] == "unsupported-attribute"


REST = [np.ones((3, 4), np.uint8), np.float32(1), np.uint8(0), np.float32(1), np.uint8(0)]
"""The operands of QLinearMatMul from b on."""


def test_rows_of_a_with_scales_are_kept() -> None:
    fed = Fed("a", (2, 3), dtype=np.uint8)
    parts = [fed, np.ones(2, np.float32), np.zeros(2, np.uint8), *REST]
    model = qoperator_model("QLinearMatMul", parts, np.uint8)
    assert refusal_of(model, "QLinearMatMul")[0] == "per-axis-input"
    assert intonnx.to_onnx(intonnx.import_model(model)).graph.node[0].op_type == "QLinearMatMul"


def test_a_scale_that_the_caller_may_override_is_never_folded() -> None:
    fed = [Fed("a", (2, 3), dtype=np.uint8), Fed("s", (), dtype=np.float32)]
    parts = [*fed, np.uint8(0), *REST]
    model = qoperator_model("QLinearMatMul", parts, np.uint8)
    assert refusal_of(model, "QLinearMatMul")[0] == "runtime-parameters"


# -- MatMulInteger --------------------------------------------------------------------------------


@settings(max_examples=40)
@given(
    seed=st.integers(0, 999),
    types=st.sampled_from([(a, b) for a in (np.uint8, np.int8) for b in (np.uint8, np.int8)]),
    shapes=st.sampled_from([((3, 7), (7, 4)), ((2, 3, 7), (7, 4)), ((2, 3, 7), (2, 7, 4)),
                            ((7,), (7, 4)), ((2, 1, 3, 7), (3, 7, 4))]),
    zeros=st.sampled_from(["none", "scalar", "columns", "run time"]),
    constant=st.booleans(),
)  # fmt: skip
def test_matmul_integer_is_exact(
    seed: int, types: Any, shapes: Any, zeros: str, constant: bool
) -> None:
    rng = np.random.default_rng(seed)
    a, b = (ends(rng, shape, kind) for shape, kind in zip(shapes, types, strict=True))
    za: Any = None if zeros == "none" else ends(rng, (), a.dtype.type)
    columns = zeros == "columns" and b.ndim == 2
    zb: Any = None if zeros == "none" else ends(rng, (4,) if columns else (), b.dtype.type)
    inputs = {"a": a} | ({} if constant else {"b": b})
    fed: list[Any] = [Fed("a", a.shape, dtype=a.dtype)]
    fed.append(b if constant else Fed("b", b.shape, dtype=b.dtype))
    if zeros == "run time":
        fed += [Fed("za", (), dtype=a.dtype), Fed("zb", (), dtype=b.dtype)]
        inputs |= {"za": za, "zb": zb}
    else:
        fed += [za, zb]
    model = qoperator_model("MatMulInteger", fed, np.int32)
    wanted = bigint.matmul_accumulator(a, b, za or 0, 0 if zb is None else zb).astype(np.int32)
    graph = intonnx.import_model(model)
    assert intonnx.coverage(graph).float == 0
    found = intonnx.compile(graph).run(inputs)
    apart(found, {"y": wanted}, 0)
    exported = intonnx.to_onnx(graph)
    for optimized in (False, True):
        apart(run_onnxruntime(exported, inputs, optimized=optimized, exact=False), found, 0)
    apart(intonnx.compile(intonnx.import_model(exported)).run(inputs), found, 0)


@pytest.mark.parametrize("shape", [(3,), (3, 1), (2, 3, 1)])
def test_matmul_integer_with_a_zero_point_for_each_row(shape: tuple[int, ...]) -> None:
    a = ends(RNG, (2, 3, 5), np.uint8)[: 2 if len(shape) == 3 else 1]
    a = a if len(shape) == 3 else a[0]
    b, za = ends(RNG, (5, 4), np.int8), ends(RNG, shape, np.uint8)
    model = qoperator_model("MatMulInteger", [Fed("a", a.shape, dtype=np.uint8), b, za], np.int32)
    column = za[:, None] if za.ndim == 1 else za
    wanted = (a.astype(np.int64) - column) @ b.astype(np.int64)
    found = intonnx.compile(intonnx.import_model(model)).run({"a": a})
    np.testing.assert_array_equal(found["y"], wanted)


def test_an_unknown_rank_is_no_error() -> None:
    build = Builder()
    shape = build.feed("shape", ["r"], np.int64)
    a = build.node("Reshape", [build.feed("a", (20,), np.uint8), shape])
    b = build.constant("b", ends(np.random.default_rng(1), (5, 3), np.uint8))
    build.output(build.node("MatMulInteger", [a, b], name="y"), np.int32)
    model = build.model()
    inputs = {"a": ends(RNG, (20,), np.uint8), "shape": np.array([2, 2, 5])}
    found = intonnx.compile(intonnx.import_model(model)).run(inputs)
    apart(found, run_onnxruntime(model, inputs, optimized=False), 0)
