"""MatMulIntegerToFloat and DynamicQuantizeMatMul against Python integers and onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import intonnx
from intonnx.ir.ops.dense import BatchMatMul, Dense
from intonnx.ir.ops.quantize import Dequantize, DynamicQuantize
from support import bigint
from support.models import Array, Fed, qoperator_model
from support.products import ends
from support.runtime import run_onnxruntime
from support.wings import apart, refusal_of

F32 = np.float32
TYPES = [(np.uint8, np.uint8), (np.uint8, np.int8), (np.int8, np.int8)]
SHAPES = [((3, 7), (7, 4)), ((2, 3, 7), (7, 4)), ((2, 3, 7), (2, 7, 4)), ((7,), (7, 4))]


def scale(rng: np.random.Generator, shape: tuple[int, ...] = ()) -> Array:
    return np.asarray(rng.uniform(0.001, 0.1, shape), F32)


def op_types(model: onnx.ModelProto) -> list[str]:
    return [node.op_type for node in model.graph.node]


def check(model: onnx.ModelProto, inputs: dict[str, Array], wanted: Array) -> intonnx.Graph:
    """All integer, equal to the wanted result, to onnxruntime and to it on every exact export."""
    graph = intonnx.import_model(model)
    assert intonnx.coverage(graph).float == 0
    found = intonnx.compile(graph).run(inputs)
    apart(found, {"y": wanted}, 0)
    apart(run_onnxruntime(model, inputs, optimized=False), found, 0)
    for runtime in ("onnxruntime", "standard"):
        exported = intonnx.to_onnx(graph, runtime=runtime)
        # With operators of ai.onnx alone, weights that are no constants keep their type.
        exact, optimized = runtime == "standard", runtime == "onnxruntime"
        apart(run_onnxruntime(exported, inputs, optimized=optimized, exact=exact), found, 0)
        apart(intonnx.compile(intonnx.import_model(exported)).run(inputs), found, 0)
        assert optimized or all(node.domain == "" for node in exported.graph.node)
    literal = intonnx.to_onnx(graph, form="qdq")
    # Sums of seven float32 products round in any order.
    (y,) = run_onnxruntime(literal, inputs, optimized=False).values()
    np.testing.assert_allclose(y, wanted, rtol=1e-5, atol=1e-3)
    return graph


@settings(max_examples=30)
@given(
    seed=st.integers(0, 999),
    types=st.sampled_from(TYPES),
    shapes=st.sampled_from(SHAPES),
    columns=st.sampled_from(["one", "single", "row", "matrix"]),
    zeros=st.sampled_from(["none", "scalar", "columns"]),
    biased=st.booleans(),
    fed=st.sets(st.sampled_from(["b", "scales", "bias"])),
)
def test_matmul_integer_to_float_is_exact(
    seed: int, types: Any, shapes: Any, columns: str, zeros: str, biased: bool, fed: set[str]
) -> None:
    rng = np.random.default_rng(seed)
    a, b = (ends(rng, shape, kind) for shape, kind in zip(shapes, types, strict=True))
    matrix = b.ndim == 2
    shape: tuple[int, ...] = {"one": (), "single": (1,), "row": (4,), "matrix": (1, 4)}[columns]
    sa, sb = scale(rng), scale(rng, shape if matrix else ())
    za: Any = None if zeros == "none" else ends(rng, (), a.dtype.type)
    zb: Any = None if zeros == "none" else ends(
        rng, (4,) if zeros == "columns" and matrix else (), b.dtype.type)  # fmt: skip
    bias = rng.normal(0, 3, 4).astype(F32) if biased else None
    inputs = {"a": a}
    parts: list[Any] = [Fed("a", a.shape, dtype=a.dtype), b, sa, sb, za, zb, bias]
    groups = {"b": [("b", 1)], "scales": [("sa", 2), ("sb", 3)], "bias": [("bias", 6)]}
    for name, index in (pair for group in sorted(fed) for pair in groups[group]):
        if parts[index] is not None:
            array = np.asarray(parts[index])
            inputs[name], parts[index] = array, Fed(name, array.shape, dtype=array.dtype)
    sums = bigint.matmul_accumulator(a, b, 0 if za is None else za, 0 if zb is None else zb)
    wanted = sums.astype(F32) * (sa * sb.reshape(sb.shape[-1:] if sb.size > 1 else ()))
    wanted = wanted if bias is None else wanted + bias
    graph = check(qoperator_model("MatMulIntegerToFloat", parts, F32), inputs, wanted)
    assert [type(node.op) for node in graph.nodes if node.op.kind == "compute"] in (
        [Dense], [BatchMatMul],
    )  # fmt: skip
    if sb.shape != (1, 4):
        assert "MatMulIntegerToFloat" in op_types(intonnx.to_onnx(graph))


@settings(max_examples=20)
@given(
    seed=st.integers(0, 999),
    kind=st.sampled_from([np.uint8, np.int8]),
    shapes=st.sampled_from(SHAPES),
    columns=st.tuples(st.booleans(), st.booleans()),
    options=st.tuples(st.booleans(), st.booleans()),
)
def test_dynamic_quantize_matmul_is_exact(
    seed: int, kind: Any, shapes: Any, columns: tuple[bool, bool], options: tuple[bool, bool]
) -> None:
    rng = np.random.default_rng(seed)
    x, b = rng.normal(0, 2, shapes[0]).astype(F32), ends(rng, shapes[1], kind)
    sb, zb = (
        maker(rng, (4,) if many and b.ndim == 2 else ())
        for many, maker in zip(columns, (scale, lambda r, s: ends(r, s, kind)), strict=True)
    )
    bias = rng.normal(0, 3, 4).astype(F32) if options[0] else None
    parts: list[Any] = [Fed("x", x.shape, dtype=F32), b, sb, zb if options[1] else None, bias]
    model = qoperator_model("DynamicQuantizeMatMul", parts, F32)
    low, high = min(x.min(), F32(0)), max(x.max(), F32(0))
    sa = F32(high - low) / F32(255)
    za = np.uint8(np.rint(np.clip(F32(0) - low / sa, 0, 255)))
    a = bigint.quantize(x, sa, za)
    sums = bigint.matmul_accumulator(a, b, za, zb if options[1] else 0)
    wanted = sums.astype(F32) * (sa * sb)
    wanted = wanted if bias is None else wanted + bias
    graph = check(model, {"x": x}, wanted)
    kinds = [type(node.op) for node in graph.nodes]
    assert [kinds[0], *kinds[2:]] == [DynamicQuantize, Dequantize]
    assert kinds[1] in (Dense, BatchMatMul)


@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("case", ["rows of a", "matrices of a batch", "both"])
def test_scales_that_are_multiplied_one_after_the_other(case: str, biased: bool) -> None:
    """onnxruntime multiplies such scales after it has added the bias."""
    rng = np.random.default_rng(3)
    a, b = ends(rng, (2, 3, 7), np.uint8), ends(rng, (2, 7, 4), np.uint8)
    sa = scale(rng) if case == "matrices of a batch" else scale(rng, (2, 3, 1))
    sb = scale(rng) if case == "rows of a" else scale(rng, (4,))
    bias = rng.normal(0, 3, 4).astype(F32) if biased else None
    parts: list[Any] = [Fed("a", a.shape, dtype=np.uint8), b, sa, sb, None, None, bias]
    model = qoperator_model("MatMulIntegerToFloat", parts, F32)
    graph = intonnx.import_model(model)
    found = intonnx.compile(graph).run({"a": a})
    apart(found, run_onnxruntime(model, {"a": a}, optimized=False), 0)
    exported = intonnx.to_onnx(graph)
    apart(run_onnxruntime(exported, {"a": a}, optimized=False, exact=False), found, 0)
    assert intonnx.coverage(graph).float == int(biased)


def test_scales_of_the_matrices_of_a_batch() -> None:
    rng = np.random.default_rng(5)
    a, b = ends(rng, (2, 3, 7), np.uint8), ends(rng, (2, 7, 4), np.uint8)
    parts = [Fed("a", a.shape, dtype=np.uint8), b, scale(rng), scale(rng, (2, 1, 4)),
             np.uint8(9), ends(rng, (2, 1, 4), np.uint8)]  # fmt: skip
    model = qoperator_model("MatMulIntegerToFloat", parts, F32)
    found = intonnx.compile(intonnx.import_model(model)).run({"a": a})
    apart(found, run_onnxruntime(model, {"a": a}, optimized=False), 0)


def test_float16_scales() -> None:
    rng = np.random.default_rng(4)
    a, b = ends(rng, (3, 7), np.uint8), ends(rng, (7, 4), np.uint8)
    half = [
        np.asarray(v, np.float16) for v in (0.02, rng.uniform(0.01, 0.1, 4), rng.normal(size=4))
    ]
    parts = [Fed("a", a.shape, dtype=np.uint8), b, *half[:2], np.uint8(3), None, half[2]]
    model = qoperator_model("MatMulIntegerToFloat", parts, np.float16)
    found = intonnx.compile(intonnx.import_model(model)).run({"a": a})
    apart(found, run_onnxruntime(model, {"a": a}, optimized=False), 0)


@pytest.mark.parametrize("sign", [-1.0, 0.0])
def test_a_scale_that_is_not_positive_is_an_operand(sign: float) -> None:
    rng = np.random.default_rng(6)
    a, b = ends(rng, (3, 7), np.uint8), ends(rng, (7, 4), np.uint8)
    scales = scale(rng, (4,)) * np.asarray([1, sign, 1, sign], F32)
    parts = [Fed("a", a.shape, dtype=np.uint8), b, F32(0.1), scales]
    model = qoperator_model("MatMulIntegerToFloat", parts, F32)
    graph = intonnx.import_model(model)
    found = intonnx.compile(graph).run({"a": a})
    apart(found, run_onnxruntime(model, {"a": a}, optimized=False), 0)
    apart(run_onnxruntime(intonnx.to_onnx(graph), {"a": a}, optimized=True), found, 0)


def test_zero_points_of_rows_are_kept() -> None:
    parts = [Fed("a", (3, 7), dtype=np.uint8), np.ones((7, 4), np.uint8), F32(1), F32(1),
             np.zeros(3, np.uint8)]  # fmt: skip
    model = qoperator_model("MatMulIntegerToFloat", parts, F32, infer=False)
    assert refusal_of(model, "MatMulIntegerToFloat")[0] == "per-axis-input"
