"""Gemm, and MatMul with the Add of a constant, through every wing."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import intonnx
from intonnx.ir.ops.dense import MatrixProduct
from support.models import Builder, Fed, Held, Params, qdq_model, run_inputs, s8, s32, u8
from support.products import check_product, ends, near
from support.runtime import run_onnxruntime
from support.wings import apart, refusal_of

RNG = np.random.default_rng(0)


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


@pytest.mark.parametrize("shape", [(), (1,), (6,), (1, 6), (3, 1), (3, 6)])
@pytest.mark.parametrize("per_column", [False, True])
def test_addends_finer_than_the_sums_are_added_behind_them(
    shape: tuple[int, ...], per_column: bool
) -> None:
    """Half a step of these sums is 25 steps of the result: rounding the addend would show."""
    few = np.zeros((20, 6))
    few[3] = 1
    weight = s8(np.linspace(40, 60, 6) if per_column else 50.0, axis=1 if per_column else None)
    addend = Held(np.asarray(RNG.uniform(-2, 2, shape), np.float32))
    operands = [Fed("x", (3, 20), u8(0.02, 9)), Held(few, weight), addend]
    model = qdq_model("Gemm", operands, out=u8(0.02, 120), attrs={"beta": 0.7})
    codes = RNG.integers(8, 11, (3, 20))
    check_product(model, {"x": ((codes - 9) * 0.02).astype(np.float32)})
