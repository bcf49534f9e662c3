"""qnn.dense and batch_matmul between quantizers, against onnxruntime and the literal QDQ model."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import intonnx
from support import strategies
from support.models import (
    MICROSOFT,
    Builder,
    Fed,
    Held,
    Params,
    qdq_model,
    run_inputs,
    s8,
    s16,
    s32,
    u8,
    u16,
)
from support.products import check_product, ends
from support.runtime import run_onnxruntime
from support.strategies import MatmulCase
from support.wings import apart, refusal_of

RNG = np.random.default_rng(0)


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
        (qdq_model("Gemm", [X, W, Held(np.full(6, 1e9, np.float32))]), "bias-out-of-range"),
        (gemm(X, W, attrs={"alpha": 0.0}), "unsupported-attribute"),
        (gemm(TINY, Held(np.ones((20, 6)), s8(1e-30))), "unsupported-type"),
    ],
)  # fmt: skip
def test_refusals(model: onnx.ModelProto, code: str) -> None:
    found, detail = refusal_of(model, "Gemm")
    assert found == code
    assert "'" in detail or "alpha" in detail


def test_weights_in_blocks_of_columns_are_refused() -> None:
    """Blocks along the contraction are `qnn.blocked_dense`."""
    build = Builder()
    x = build.operand(Fed("x", (3, 20), u8(0.02, 9)), 0)
    scale = build.constant("scale", np.full((20, 2), 0.1, np.float32))
    w = build.node("DequantizeLinear", [build.constant("w", np.ones((20, 6), np.int8)), scale],
                   axis=1, block_size=3)  # fmt: skip
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
