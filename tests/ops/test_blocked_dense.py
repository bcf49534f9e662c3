"""qnn.blocked_dense against onnxruntime and against sums of Python integers."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import intonnx
from intonnx.ir.op import Op
from intonnx.ir.ops.blocked_dense import BlockedDense
from intonnx.ir.types import DType, QuantParams, TensorType, plain
from support import strategies
from support.models import Array, Builder, Fed, Params, s8, u8, u16
from support.movers import blocked, kind
from support.wings import check_model, refusal_of

INT4, UINT4 = ml_dtypes.int4, ml_dtypes.uint4
Y = u8(0.4, 90)
OUT = QuantParams(storage=DType.U8, scale=0.5, zero_point=3)
FAR = QuantParams(storage=DType.U8, scale=[1, 2], zero_point=[0, 0], axis=1)


def weights(
    build: Builder, shape: tuple[int, int], block: int, storage: npt.DTypeLike = np.int8,
    *, axis: int = 0, far: bool = True, seed: int = 0,
) -> str:  # fmt: skip
    """A matrix dequantized in blocks; `far` gives zero points anywhere."""
    rng = np.random.default_rng(seed)
    info = ml_dtypes.iinfo(np.dtype(storage))
    sizes = [-(-n // block) if i == axis else n for i, n in enumerate(shape)]
    codes = rng.integers(info.min, info.max + 1, shape)
    zeros = rng.integers(info.min, info.max + 1, sizes) if far else np.full(sizes, info.min + 1)
    b = build.constant("b", codes.astype(storage))
    build.constant("b_scale", rng.uniform(0.01, 0.04, sizes).astype(np.float32))
    build.constant("b_zero", zeros.astype(storage))
    names = [b, "b_scale", "b_zero"]
    return build.node("DequantizeLinear", names, axis=axis, block_size=block)


def model(
    x: Fed, b: tuple[int, int], block: int, out: Params = Y, **options: Any
) -> onnx.ModelProto:
    build = Builder()
    left = build.operand(x, 0)
    right = weights(build, b, block, **options)
    build.output(build.quantize(build.node("MatMul", [left, right]), out, "y"), out.dtype)
    return build.model()


def codes(x: Fed, seed: int = 0) -> dict[str, Array]:
    assert x.params is not None
    info = ml_dtypes.iinfo(np.dtype(x.params.dtype))
    shape = [n if isinstance(n, int) else 3 for n in x.shape]
    found = np.random.default_rng(seed).integers(info.min, info.max + 1, shape)
    return {x.name: found.astype(x.params.dtype)}


@pytest.mark.parametrize(
    ("constraint", "op", "a", "b"),
    [
        ("C1", BlockedDense(out=OUT), plain(DType.U8, (2, 6)), blocked((6, 5), 0, 3)),
        ("C1", BlockedDense(out=OUT), kind((2, 6), axis=1, n=6), blocked((6, 5), 0, 3)),
        ("C1", BlockedDense(out=OUT), kind(()), blocked((6, 5), 0, 3)),
        ("C2", BlockedDense(out=OUT), kind((2, 6)), kind((6, 5))),
        ("C2", BlockedDense(out=OUT), kind((2, 6)), blocked((6, 5), 1, 3)),
        ("C2", BlockedDense(out=OUT), kind((2, 6)), blocked((1, 6, 5), 0, 1)),
        ("C3", BlockedDense(out=OUT), kind((2, 7)), blocked((6, 5), 0, 3)),
        ("C4", BlockedDense(out=FAR), kind((2, 6)), blocked((6, 2), 0, 3)),
    ],
)
def test_blocked_dense_refuses_c1_to_c4(
    constraint: str, op: Op, a: TensorType, b: TensorType
) -> None:
    with pytest.raises(intonnx.TypeFailure, match=constraint):
        op.infer([a, b])


@settings(max_examples=40)
@given(st.data())
def test_it_is_the_product_with_dequantized_weights(data: st.DataObject) -> None:
    params = data.draw(strategies.params(data.draw(strategies.storages())))
    storage = data.draw(st.sampled_from([INT4, UINT4, np.int8, np.uint8]))
    block, count = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 6))
    lead = data.draw(st.sampled_from([(3,), (2, 3), (1, 2, 2)]))
    x = Fed("x", (*lead, block * count), params, quantized=data.draw(st.booleans()))
    out = Params(params.dtype, float(params.scale_array) * 2, data.draw(
        strategies.zero_points(params.dtype)))  # fmt: skip
    narrow = storage in (INT4, UINT4)
    proto = model(x, (block * count, 7), block, out, storage=storage, far=narrow)
    inputs = codes(x)
    if not x.quantized:
        centred = inputs["x"].astype(np.float32) - params.zero_array
        inputs = {"x": (centred * params.scale_array).astype(np.float32)}
    graph = check_model(proto, inputs, literal_quanta=1)
    assert any(isinstance(node.op, BlockedDense) for node in graph.nodes)
    exported = {node.op_type for node in intonnx.to_onnx(graph).graph.node}
    assert "MatMulInteger" in exported
    assert "MatMul" not in exported


@pytest.mark.parametrize(
    ("x", "k", "block", "options"),
    [
        (u8(0.02, 114), 10, 4, {}),  # the last block is shorter
        (u16(2e-4, 30000), 32, 16, {"storage": INT4}),
        (s8(0.02, 0), 32, 16, {"storage": np.uint8}),  # zero points that no 8 bits hold
    ],
)
def test_other_products_are_written_between_quantizers(
    x: Params, k: int, block: int, options: dict[str, Any]
) -> None:
    fed = Fed("x", (3, k), x, quantized=True)
    proto = model(fed, (k, 16), block, Params(x.dtype, x.scale * 3, x.zero_point), **options)
    check_model(proto, codes(fed), literal_quanta=1, export_quanta=1)


def test_sums_of_blocks_are_those_of_python_integers() -> None:
    x = Fed("x", (2, 12), u8(0.02, 200), quantized=True)
    proto = model(x, (12, 3), 4, u8(0.5, 17))
    graph = intonnx.import_model(proto)
    given_codes = codes(x)["x"]
    constants = {t.name: onnx.numpy_helper.to_array(t) for t in proto.graph.initializer}
    b, scale, zero = (constants[name] for name in ("b", "b_scale", "b_zero"))
    wanted = np.zeros((2, 3), np.float32)
    for m, n in np.ndindex(2, 3):
        for block in range(3):
            terms = [
                (int(given_codes[m, k]) - 200) * (int(b[k, n]) - int(zero[block, n]))
                for k in range(4 * block, 4 * block + 4)
            ]
            factor = np.float32(0.02) * scale[block, n]
            wanted[m, n] += np.float32(sum(terms)) * factor
    codes_of = np.clip(np.rint(wanted / np.float32(0.5)), -17, 238) + 17
    found = intonnx.compile(graph).run({"x": given_codes})["y"]
    np.testing.assert_array_equal(found, codes_of.astype(np.uint8))


def test_a_vector_and_a_batch_of_unknown_size() -> None:
    for shape in ((8,), ("N", 8), ("N", "M", 8)):
        x = Fed("x", shape, u8(0.02, 114), quantized=True)
        check_model(model(x, (8, 5), 4), codes(x), literal_quanta=1, export_quanta=1)


@pytest.mark.parametrize("form", ["Gemm", "Transpose"])
def test_columns_first(form: str) -> None:
    build = Builder()
    x = Fed("x", (3, 8), u8(0.02, 114), quantized=True)
    left = build.operand(x, 0)
    right = weights(build, (5, 8), 4, axis=1)
    if form == "Gemm":
        product = build.node("Gemm", [left, right], transB=1, alpha=0.5)
    else:
        product = build.node("MatMul", [left, build.node("Transpose", [right], perm=[1, 0])])
    build.output(build.quantize(product, u8(0.4, 90), "y"), np.uint8)
    graph = check_model(build.model(), codes(x), literal_quanta=1, export_quanta=1)
    assert any(isinstance(node.op, BlockedDense) for node in graph.nodes)
    assert intonnx.parse(str(graph), weights=graph.constants) == graph


def test_two_quantizers() -> None:
    build = Builder()
    x = Fed("x", (3, 8), u8(0.02, 114), quantized=True)
    product = build.node("MatMul", [build.operand(x, 0), weights(build, (8, 5), 4, far=False)])
    for name, out in (("y", u8(0.4, 90)), ("z", s8(0.7, -5))):
        build.output(build.quantize(product, out, name), out.dtype)
    graph = check_model(build.model(), codes(x), literal_quanta=1)
    assert sum(isinstance(node.op, BlockedDense) for node in graph.nodes) == 2
    products = {n.multiply_accumulates for n in intonnx.coverage(graph).nodes}
    assert 3 * 5 * 8 in products


def test_refusals() -> None:
    x = Fed("x", (3, 8), u8(0.02, 114))
    code, detail = refusal_of(model(x, (8, 6), 3, axis=1), "MatMul")
    assert code == "blocked-input"
    assert "axis 1" in detail
    for addend, wanted in ((True, "blocked-input"), (False, "output-not-quantized")):
        build = Builder()
        operands = [build.operand(x, 0), weights(build, (8, 5), 4)]
        if addend:
            operands.append(build.constant("c", np.ones(5, np.float32)))
        product = build.node("Gemm", operands, name="product")
        if addend:
            build.output(build.quantize(product, u8(0.4, 90), "y"), np.uint8)
        else:
            build.output(product, np.float32)
        assert refusal_of(build.model(), "Gemm")[0] == wanted
