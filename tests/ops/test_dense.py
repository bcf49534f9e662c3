"""qnn.dense and qnn.batch_matmul against Python integers, onnxruntime and the literal QDQ model."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import intonnx
from intonnx.ir.ops.dense import BatchMatMul, Dense, MatrixProduct
from intonnx.ir.types import DType, QuantParams, TensorType, plain, quantized
from support import bigint, strategies
from support.models import (
    MICROSOFT,
    Array,
    Builder,
    Fed,
    Held,
    Params,
    qdq_model,
    qoperator_model,
    run_inputs,
    s8,
    s16,
    s32,
    u8,
    u16,
)
from support.products import check_product, ends, near
from support.runtime import run_onnxruntime
from support.strategies import MatmulCase
from support.wings import apart, refusal_of

RNG = np.random.default_rng(0)


def q(shape: tuple[int | str, ...] | None, scale: Any = 0.5, axis: int | None = None,
      storage: DType = DType.U8) -> TensorType:  # fmt: skip
    scales = np.asarray(scale, np.float32)
    params = QuantParams(
        storage=storage, scale=scales, zero_point=np.zeros(scales.shape), axis=axis
    )
    return quantized(params, shape)


def i32(*shape: int) -> TensorType:
    return plain(DType.I32, shape)


# -- constraints ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("op", "a", "b"),
    [
        (Dense(), q(()), q((3, 4))),
        (Dense(), q((2, 3)), q((3,))),
        (Dense(), q((2, 3)), q((1, 3, 4))),
        (Dense(), q(None), q((3, 4))),
        (BatchMatMul(), q(()), q((3,))),
        (BatchMatMul(), q((2, 4, 1, 3)), q((4, 5, 3, 2))),
        (BatchMatMul(), q((2, 3)), q(None)),
    ],
)
def test_c1_ranks_and_batches(op: MatrixProduct, a: TensorType, b: TensorType) -> None:
    with pytest.raises(intonnx.TypeFailure, match="C1"):
        op.infer([a, b])


@pytest.mark.parametrize("op", [Dense(), BatchMatMul()])
def test_c2_the_shared_axis_has_one_length(op: MatrixProduct) -> None:
    with pytest.raises(intonnx.TypeFailure, match="C2"):
        op.infer([q((2, 3)), q((4, 5))])


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (q((2, 3)), plain(DType.U8, (3, 4))),
        (plain(DType.U8, (2, 3)), q((3, 4))),
        (plain(DType.F32, (2, 3)), plain(DType.U8, (3, 4))),
        (q((2, 3), [0.5, 1.0], 0), q((3, 4))),
        (q((2, 3)), q((3, 4), [1.0] * 3, 0)),
    ],
)
def test_c3_both_are_quantized_b_per_column(a: TensorType, b: TensorType) -> None:
    for op in (Dense(), BatchMatMul()):
        with pytest.raises(intonnx.TypeFailure, match="C3"):
            op.infer([a, b])


def test_c3_a_vector_has_no_columns() -> None:
    with pytest.raises(intonnx.TypeFailure, match="C3"):
        BatchMatMul().infer([q((2, 3)), q((3,), [1.0] * 3, 0)])


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_c4_the_scale_of_the_accumulator_is_a_float32(scale: float) -> None:
    with pytest.raises(intonnx.TypeFailure, match="C4"):
        Dense().infer([q((2, 3), scale), q((3, 4), scale)])


@pytest.mark.parametrize(
    "bias", [plain(DType.F32, (4,)), i32(3), i32(2, 3), i32(3, 4), i32(1, 2, 4)]
)
def test_c5_the_bias_is_i32_and_broadcasts(bias: TensorType) -> None:
    with pytest.raises(intonnx.TypeFailure, match="C5"):
        Dense().infer([q((2, 3)), q((3, 4)), bias])


def test_c6_zero_points_are_operands_of_plain_integers_only() -> None:
    zero = plain(DType.U8, ())
    with pytest.raises(intonnx.TypeFailure, match="C6"):
        Dense().infer([q((2, 3)), q((3, 4)), None, zero])
    kinds = plain(DType.U8, (2, 3)), plain(DType.I8, (3, 4))
    assert Dense().infer([*kinds, None, zero, zero]) == (i32(2, 4),)


@pytest.mark.parametrize(
    ("a", "b", "shape"),
    [
        ((2, 3), (3, 4), (2, 4)),
        ((3,), (3, 4), (4,)),
        (("N", 5, 3), (3, 4), ("N", 5, 4)),
        ((3,), (3,), ()),
        ((2, 3), (3,), (2,)),
        ((3,), (7, 3, 4), (7, 4)),
        ((5, 1, 2, 3), (7, 3, 4), (5, 7, 2, 4)),
        (("N", 2, 3), ("N", 3, 4), ("N", 2, 4)),
        (("N", 2, 3), (1, 3, 4), ("N", 2, 4)),
        (("N", 2, 3), (6, 3, 4), (6, 2, 4)),
        (("N", 2, 3), ("M", 3, 4), ("?", 2, 4)),
    ],
)
def test_result_shapes_are_those_of_matmul(a: Any, b: Any, shape: Any) -> None:
    op = Dense() if len(b) == 2 else BatchMatMul()
    (kind,) = op.infer([q(a, 0.5), q(b, 0.25)])
    assert kind.shape == shape
    assert (kind.dtype, kind.params.scalar_scale) == (DType.I32, 0.125)
    if all(isinstance(size, int) for size in (*a, *b)):
        assert np.matmul(np.zeros(a), np.zeros(b)).shape == shape


def test_columns_of_b_are_the_last_axis_of_the_result() -> None:
    (kind,) = Dense().infer([q((7, 2, 3), 0.5), q((3, 2), [1.0, 2.0], 1)])
    assert (kind.params.axis, kind.params.scale.tolist()) == (2, [0.5, 1.0])


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


# -- between quantizers ---------------------------------------------------------------------------

ACTIVATIONS = [u8(0.02, 114), u8(0.02, 0), u8(0.02, 255), s8(0.02, -3), s8(0.02, 127)]
WEIGHTS = [s8(0.01), s8(0.01, 55), s8(0.01, None), u8(0.01, 131),
           s8(np.linspace(0.001, 0.02, 6), axis=-1),
           s8(np.linspace(0.001, 0.02, 6), np.arange(-3, 3), axis=1),
           u8(np.linspace(0.001, 0.02, 6), np.arange(120, 126), axis=1)]  # fmt: skip


@pytest.mark.parametrize("quantized_input", [False, True])
@pytest.mark.parametrize("weight", range(len(WEIGHTS)))
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_matmul_with_constant_weights(
    activation: Params, weight: int, quantized_input: bool
) -> None:
    w = WEIGHTS[weight]
    codes = ends(RNG, (20, 6), np.dtype(w.dtype).type)
    model = qdq_model(
        "MatMul",
        [Fed("x", (3, 20), activation, quantized=quantized_input), Held(codes, w)],
        out=Params(activation.dtype, 0.05, activation.zero_point),
    )
    graph = check_product(model, run_inputs(model, weight))
    kernels = {node.op_type for node in intonnx.to_onnx(graph).graph.node}
    assert "QLinearMatMul" in kernels


@pytest.mark.parametrize("opset", [10, 13, 19, 21, 23])
def test_every_opset(opset: int) -> None:
    model = qdq_model(
        "MatMul",
        [Fed("x", (3, 8), u8(0.02, 9)), Held(ends(RNG, (8, 5), np.int8), s8(0.01))],
        out=u8(0.05, 7),
        opset=opset,
    )
    check_product(model, run_inputs(model))
    attrs = {"transB": 1}
    operands = [
        Fed("x", (3, 8), u8(0.02, 9)),
        Held(ends(RNG, (5, 8), np.int8), s8(0.01)),
        Held(np.arange(5), s32(0.02 * 0.01)),
    ]
    model = qdq_model("Gemm", operands, out=u8(0.05, 7), opset=opset, attrs=attrs)
    check_product(model, run_inputs(model))


@pytest.mark.parametrize(
    ("a", "b"),
    [((3, 20), (20, 6)), ((2, 3, 20), (20, 6)), ((2, 3, 20), (2, 20, 6)), ((20,), (20, 6)),
     ((2, 1, 3, 20), (4, 20, 6)), ((3, 20), (2, 20, 6)), ((1, 300), (300, 2)),
     ((20,), (2, 20, 6)), ((3, 20), (20,)), ((20,), (20,))],
)  # fmt: skip
@pytest.mark.parametrize("kinds", [(u8, u8), (u8, s8), (s8, s8), (s8, u8)])
def test_matmul_of_two_activations(a: Any, b: Any, kinds: Any) -> None:
    left, right = (kind(0.02, 60 + i) for i, kind in enumerate(kinds))
    fed = [Fed("a", a, left, quantized=True), Fed("b", b, right, quantized=True)]
    model = qdq_model("MatMul", fed, out=Params(left.dtype, 0.3, 7))
    inputs = {"a": ends(RNG, a, left.dtype), "b": ends(RNG, b, right.dtype)}
    # onnxruntime has no MatMulInteger for vectors on the right.
    check_product(model, inputs, exact=len(b) > 1)


@settings(max_examples=25)
@given(case=strategies.matmul_cases(), quantized_input=st.booleans())
def test_any_matmul_is_the_literal_one_within_a_quantum(
    case: MatmulCase, quantized_input: bool
) -> None:
    fed = Fed("x", case.a.shape, case.a_params, quantized=quantized_input)
    model = qdq_model("MatMul", [fed, Held(case.b, case.b_params)], out=case.out)
    inputs = {"x": case.a} if quantized_input else run_inputs(model)
    check_product(model, inputs)


@pytest.mark.parametrize("weight", [s8(0.01), s8(np.linspace(0.001, 0.02, 6), axis=1)])
@pytest.mark.parametrize("bias", [None, "exact", "float"])
def test_without_an_output_quantizer_the_result_is_the_scaled_sum(
    weight: Params, bias: str | None
) -> None:
    c: Held | None = None
    if bias == "float":
        c = Held(RNG.standard_normal(6).astype(np.float32))
    elif bias == "exact":
        scale = np.float32(0.02) * weight.scale_array
        c = Held(RNG.integers(-999, 999, 6), s32(scale, axis=0 if scale.ndim else None))
    operands = [Fed("x", (3, 20), u8(0.02, 114)), Held(ends(RNG, (20, 6), np.int8), weight), c]
    model = qdq_model("Gemm", operands)
    graph = intonnx.import_model(model)
    inputs = run_inputs(model)
    found = intonnx.compile(graph).run(inputs)
    for runtime in ("onnxruntime", "standard"):
        exported = intonnx.to_onnx(graph, runtime=runtime)
        for optimized in (False, True):
            apart(run_onnxruntime(exported, inputs, optimized=optimized), found, 0)
    wanted = run_onnxruntime(model, inputs, optimized=False)
    step = float(np.max(np.float32(0.02) * weight.scale_array))
    np.testing.assert_allclose(found["y"], wanted["y"], atol=step, rtol=1e-5)


# -- Gemm -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("trans", [(0, 0), (1, 0), (0, 1), (1, 1)])
@pytest.mark.parametrize("alpha", [1.0, 0.5, 3.0, -0.7])
@pytest.mark.parametrize("beta", [1.0, 0.3, -2.0, 0.0])
def test_gemm_alpha_and_beta_mean_what_onnx_says(
    trans: tuple[int, int], alpha: float, beta: float
) -> None:
    weight = [s8(0.01, -5), u8(0.01, 99)][int(alpha * 10) % 2]
    b = ends(RNG, (6, 20) if trans[1] else (20, 6), np.dtype(weight.dtype).type)
    operands = [
        Fed("x", (20, 3) if trans[0] else (3, 20), u8(0.02, 114)),
        Held(b, weight),
        Held(RNG.integers(-9999, 9999, 6), s32(0.0007, 4000)),
    ]
    attrs = {"transA": trans[0], "transB": trans[1], "alpha": alpha, "beta": beta}
    model = qdq_model("Gemm", operands, out=u8(0.2, 100), attrs=attrs)
    check_product(model, run_inputs(model))


@pytest.mark.parametrize("shape", [(), (1,), (6,), (1, 6), (1, 1), (3, 1), (3, 6)])
@pytest.mark.parametrize("per_column", [False, True])
@pytest.mark.parametrize("kind", ["float", "codes", "int8"])
def test_gemm_addends_of_every_shape(shape: tuple[int, ...], per_column: bool, kind: str) -> None:
    scale = np.linspace(0.005, 0.02, 6) if per_column else 0.01
    codes = RNG.integers(-9999, 9999, shape)
    c = {
        "float": Held(np.asarray(codes * 1e-4, np.float32)),
        "codes": Held(codes, s32(0.02 * 0.01)),
        "int8": Held(codes % 100, s8(0.01, 3)),
    }[kind]
    weight = s8(scale, axis=0 if per_column else None)
    operands = [Fed("x", (3, 20), u8(0.02, 114)), Held(ends(RNG, (6, 20), np.int8), weight), c]
    model = qdq_model("Gemm", operands, out=u8(0.1, 100), attrs={"transB": 1})
    check_product(model, run_inputs(model))


def test_alpha_of_two_activations_is_a_scale() -> None:
    fed = [Fed("a", (3, 8), u8(0.02, 9)), Fed("b", (5, 8), u8(0.02, 200))]
    for attrs in ({"alpha": 0.25, "transB": 1}, {"transB": 1}):
        model = qdq_model("Gemm", fed, out=u8(0.05, 7), attrs=attrs)
        check_product(model, run_inputs(model))
    negative = qdq_model("Gemm", fed, out=u8(0.05, 7), attrs={"alpha": -1.0, "transB": 1})
    assert refusal_of(negative, "Gemm")[0] == "unsupported-attribute"


def test_a_bias_with_a_scale_three_times_too_large_is_converted() -> None:
    codes = RNG.integers(-9999, 9999, 6)
    operands = [
        Fed("x", (3, 20), u8(0.02, 114)),
        Held(ends(RNG, (20, 6), np.int8), s8(0.01)),
        Held(codes, s32(3 * 0.02 * 0.01)),
    ]
    graph = check_product(model := qdq_model("Gemm", operands, out=u8(0.1, 100)), run_inputs(model))
    (bias,) = [array for array in graph.constants.values() if array.dtype == np.int32]
    np.testing.assert_array_equal(bias, codes * 3)


# -- the Add of a bias ----------------------------------------------------------------------------


def matmul_add(
    shape: tuple[int | str, ...], c: Held, *, weight: Params | None = None, swap: bool = False,
    out: Params | None = None, use: str = "",
) -> onnx.ModelProto:  # fmt: skip
    """x [*shape] times w [20, 6], plus a constant; with `use` the product is used twice."""
    build = Builder()
    x = build.operand(Fed("x", shape, u8(0.02, 114)), 0)
    w = build.operand(Held(ends(np.random.default_rng(1), (20, 6), np.int8), weight or s8(0.01)), 1)
    product = build.node("MatMul", [x, w], name="product")
    addend = build.operand(c, 2)
    total = build.node("Add", [addend, product] if swap else [product, addend], name="total")
    if use == "output":
        build.output(product, np.float32)
    if use == "twice":
        build.output(build.quantize(product, u8(0.1, 3), "z"), np.uint8)
    out = out or u8(0.05, 100)
    build.output(build.quantize(total, out, "y"), out.dtype)
    return build.model()


@pytest.mark.parametrize("shape", [(3, 20), (2, 3, 20), (20,)])
@pytest.mark.parametrize("per_column", [False, True])
@pytest.mark.parametrize("swap", [False, True])
@pytest.mark.parametrize(
    "c",
    [
        Held(np.linspace(-3, 3, 6, dtype=np.float32)),
        Held(np.arange(6) * 999, s32(0.02 * 0.01)),
        Held(np.asarray(2.5, np.float32)),
        Held(np.linspace(-3, 3, 6, dtype=np.float32)[None]),
    ],
)
def test_the_add_of_a_constant_joins_the_product(
    shape: tuple[int, ...], per_column: bool, swap: bool, c: Held
) -> None:
    if len(shape) < np.ndim(c.value):
        pytest.skip("the sum has a higher rank than the product")
    weight = s8(np.linspace(0.001, 0.02, 6), axis=1) if per_column else s8(0.01)
    model = matmul_add(shape, c, weight=weight, swap=swap)
    graph = check_product(model, run_inputs(model))
    assert [node.op.name for node in graph.nodes] == ["qnn.quantize", "qnn.dense", "qnn.requantize"]


def test_an_addend_of_many_rows_joins_the_product() -> None:
    for shape in ((3, 6), (3, 1), (2, 3, 6), (2, 1, 1)):
        model = matmul_add((2, 3, 20), Held(RNG.standard_normal(shape).astype(np.float32)))
        check_product(model, run_inputs(model))


def test_two_adds_join_one_product() -> None:
    build = Builder()
    x = build.operand(Fed("x", (3, 20), u8(0.02, 114)), 0)
    w = build.operand(Held(ends(RNG, (20, 6), np.int8), s8(0.01)), 1)
    value = build.node("MatMul", [x, w])
    for i in (2, 3):
        c = build.operand(Held(RNG.standard_normal(6).astype(np.float32)), i)
        value = build.node("Add", [value, c])
    build.output(build.quantize(value, u8(0.05, 100), "y"), np.uint8)
    model = build.model()
    graph = check_product(model, run_inputs(model))
    assert len(graph.nodes) == 3


@pytest.mark.parametrize("use", ["output", "twice"])
def test_a_product_with_another_reader_keeps_its_add(use: str) -> None:
    model = matmul_add((3, 20), Held(np.linspace(-3, 3, 6, dtype=np.float32)), use=use)
    graph = intonnx.import_model(model)
    inputs = run_inputs(model)
    found = intonnx.compile(graph).run(inputs)
    near(found, run_onnxruntime(model, inputs, optimized=False), 1)
    products = [node for node in graph.nodes if isinstance(node.op, MatrixProduct)]
    assert all(len(list(filter(None, node.operands))) == 2 for node in products)


def test_an_addend_finer_than_the_accumulator_does_not_lose_codes() -> None:
    """Half a step of this accumulator is 50 steps of the result: rounding the bias would show."""
    c = Held(np.linspace(-3, 3, 6, dtype=np.float32))
    model = matmul_add((3, 20), c, weight=s8(50.0), out=u8(0.01, 100))
    inputs = {"x": np.zeros((3, 20), np.float32)}
    found = intonnx.compile(intonnx.import_model(model)).run(inputs)
    near(found, run_onnxruntime(model, inputs, optimized=False), 1)


def test_a_conv_takes_the_add_of_a_constant_for_each_channel() -> None:
    for shape, folded in (((4, 1, 1), True), ((1, 4, 1, 1), True), ((), True), ((6,), False)):
        build = Builder()
        x = build.operand(Fed("x", (1, 3, 6, 6), u8(0.02, 114)), 0)
        scales = s8(np.linspace(0.001, 0.02, 4), axis=0)
        w = build.operand(Held(ends(RNG, (4, 3, 1, 1), np.int8), scales), 1)
        bias = build.operand(Held(RNG.standard_normal(4).astype(np.float32)), 2)
        addend = build.operand(Held(RNG.standard_normal(shape).astype(np.float32)), 3)
        total = build.node("Add", [build.node("Conv", [x, w, bias]), addend])
        build.output(build.quantize(total, u8(0.05, 100), "y"), np.uint8)
        model = build.model()
        graph = intonnx.import_model(model)
        names = [node.op.name for node in graph.nodes]
        assert (names == ["qnn.quantize", "qnn.conv2d", "qnn.requantize"]) == folded
        inputs = run_inputs(model)
        found = intonnx.compile(graph).run(inputs)
        near(found, run_onnxruntime(model, inputs, optimized=False), 1)
        apart(run_onnxruntime(intonnx.to_onnx(graph), inputs, optimized=False), found, 0)


# -- types without kernels ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("a", "w"), [(u16(0.001, 30000), s8(0.01)), (s16(0.001), s8(0.01)), (s16(0.001), s16(0.001))]
)
def test_sixteen_bits_are_integer_here_and_qdq_in_onnx(a: Params, w: Params) -> None:
    codes = ends(RNG, (20, 6), np.dtype(w.dtype).type)
    model = qdq_model(
        "MatMul", [Fed("x", (3, 20), a), Held(codes, w)], out=Params(a.dtype, 0.02, 5)
    )
    inputs = {"x": np.asarray(RNG.uniform(-40, 40, (3, 20)), np.float32)}
    # Optimized, onnxruntime multiplies 16-bit activations with s8 weights less exactly.
    check_product(model, inputs, exact=False, optimized=False)


def test_u8_to_s8_and_to_u16() -> None:
    for out in (s8(0.05, -7), u16(0.0005, 999), s16(0.0005)):
        operands = [Fed("x", (3, 20), u8(0.02, 9)), Held(ends(RNG, (20, 6), np.int8), s8(0.01))]
        model = qdq_model("MatMul", operands, out=out)
        check_product(model, run_inputs(model))


def test_four_bit_weights_take_a_byte_in_integer_operators() -> None:
    build = Builder()
    x = build.operand(Fed("x", (3, 20), u8(0.02, 9)), 0)
    codes = RNG.integers(-8, 8, (20, 6))
    packed = onnx.helper.make_tensor("w", onnx.TensorProto.INT4, (20, 6), codes.ravel().tolist())
    build.constants.append(packed)
    scale = build.constant("w_scale", np.float32(0.1))
    w = build.node("DequantizeLinear", ["w", scale])
    build.output(build.quantize(build.node("MatMul", [x, w]), u8(0.05, 100), "y"), np.uint8)
    model = build.model()
    graph = check_product(model, run_inputs(model))
    assert "QLinearMatMul" in {node.op_type for node in intonnx.to_onnx(graph).graph.node}


def test_float16_scales() -> None:
    x, w = u8(0.02, 114), s8(0.01)
    build = Builder()
    codes = build.feed("x", (3, 20), np.uint8)
    half = build.constant("sx", np.float16(x.scale))
    real = build.node("DequantizeLinear", [codes, half, build.constant("zx", np.uint8(114))])
    weights = build.constant("w", ends(RNG, (20, 6), np.int8))
    w_real = build.node("DequantizeLinear", [weights, build.constant("sw", np.float16(w.scale))])
    y = build.node("MatMul", [real, w_real], name="real")
    out = [build.constant("sy", np.float16(0.1)), build.constant("zy", np.uint8(9))]
    build.output(build.node("QuantizeLinear", [y, *out], name="y"), np.uint8)
    build.output(build.node("Identity", [y], name="z"), np.float16)
    model = build.model()
    inputs = {"x": RNG.integers(90, 140, (3, 20)).astype(np.uint8)}
    check_product(model, inputs)


# -- refusals -------------------------------------------------------------------------------------


def gemm(x: Any, w: Any, c: Any = None, **more: Any) -> onnx.ModelProto:
    return qdq_model("Gemm", [x, w, c], out=u8(0.05, 7), **more)


X = Fed("x", (3, 20), u8(0.02, 9))
W = Held(np.ones((20, 6)), s8(0.01))
TINY = Fed("x", (3, 20), u8(1e-30, 9))


@pytest.mark.parametrize(
    ("model", "code"),
    [
        (gemm(Fed("x", (3, 20)), W), "input-not-quantized"),
        (gemm(X, Held(np.ones((20, 6), np.float32))), "input-not-quantized"),
        (gemm(Fed("x", (3, 20), u8(np.full(3, 0.1), axis=0)), W), "per-axis-input"),
        (gemm(X, Held(np.ones((20, 6)), s8(np.full(20, 0.1), axis=0))), "per-axis-input"),
        (gemm(X, W, Fed("c", (6,))), "runtime-constant"),
        (gemm(X, W, Held(np.full(6, 1e9, np.float32))), "bias-out-of-range"),
        (gemm(X, W, attrs={"alpha": 0.0}), "unsupported-attribute"),
        (gemm(TINY, Held(np.ones((20, 6)), s8(1e-30))), "unsupported-type"),
    ],
)  # fmt: skip
def test_refusals(model: onnx.ModelProto, code: str) -> None:
    found, detail = refusal_of(model, "Gemm")
    assert found == code
    assert "'" in detail or "alpha" in detail


def test_blocked_weights_are_refused() -> None:
    build = Builder()
    x = build.operand(Fed("x", (3, 20), u8(0.02, 9)), 0)
    scale = build.constant("scale", np.full((5, 6), 0.1, np.float32))
    w = build.node("DequantizeLinear", [build.constant("w", np.ones((20, 6), np.int8)), scale],
                   axis=0, block_size=4)  # fmt: skip
    build.output(build.quantize(build.node("MatMul", [x, w]), u8(0.05, 7), "y"), np.uint8)
    assert refusal_of(build.model(), "MatMul")[0] == "blocked-input"


def test_a_weight_only_product_gains_no_quantization() -> None:
    model = qdq_model("MatMul", [Fed("x", (3, 20)), W])
    graph = intonnx.import_model(model)
    assert not any(node.op.name == "qnn.quantize" for node in graph.nodes)
    assert refusal_of(model, "MatMul")[0] == "input-not-quantized"
    assert MICROSOFT not in {node.domain for node in intonnx.to_onnx(graph).graph.node}


def test_per_channel_weights_through_a_transpose() -> None:
    build = Builder()
    x = build.operand(Fed("x", (3, 20), u8(0.02, 9)), 0)
    w = build.operand(Held(ends(RNG, (6, 20), np.int8), s8(np.linspace(0.01, 0.02, 6), axis=0)), 1)
    product = build.node("MatMul", [x, build.node("Transpose", [w], perm=[1, 0])])
    build.output(build.quantize(product, u8(0.1, 7), "y"), np.uint8)
    model = build.model()
    graph = check_product(model, run_inputs(model))
    assert [node.op.name for node in graph.nodes] == ["qnn.quantize", "qnn.dense", "qnn.requantize"]


# -- hazards --------------------------------------------------------------------------------------


@pytest.mark.parametrize("constant", [True, False])
def test_extreme_codes_are_exact_on_cpus_without_vnni(constant: bool) -> None:
    """The export runs as it is: no help from the test's own `exact_model`."""
    a, b = np.full((2, 64), 255, np.uint8), np.full((64, 4), 127, np.int8)
    right = Held(b, s8(0.01)) if constant else Fed("b", b.shape, s8(0.01), quantized=True)
    model = qdq_model("MatMul", [Fed("a", a.shape, u8(0.02), quantized=True), right], out=u8(4.0))
    inputs = {"a": a} | ({} if constant else {"b": b})
    graph = intonnx.import_model(model)
    found = intonnx.compile(graph).run(inputs)
    assert found["y"].tolist() == np.full((2, 4), round(255 * 127 * 64 * 0.02 * 0.01 / 4)).tolist()
    exported = intonnx.to_onnx(graph)
    apart(run_onnxruntime(exported, inputs, optimized=False, exact=False), found, 0)


def test_weights_that_cannot_saturate_stay_as_they_are() -> None:
    b = np.full((64, 4), 60, np.int8)
    operands = [Fed("a", (2, 64), u8(0.02), quantized=True), Held(b, s8(0.01))]
    exported = intonnx.to_onnx(intonnx.import_model(qdq_model("MatMul", operands, out=u8(4.0))))
    types = {t.name: t.data_type for t in exported.graph.initializer}
    assert types[exported.graph.node[0].input[3]] == onnx.TensorProto.INT8


def test_sums_beyond_int32_do_not_wrap() -> None:
    k = 40_000
    operands = [
        Fed("x", (1, k), u16(1e-4), quantized=True),
        Held(np.full((k, 1), 127), s8(1e-3)),
    ]
    model = qdq_model("MatMul", operands, out=u16(1.0))
    inputs = {"x": np.full((1, k), 65535, np.uint16)}
    found = intonnx.compile(intonnx.import_model(model)).run(inputs)
    assert int(found["y"][0, 0]) == round(65535 * 127 * k * 1e-7)
