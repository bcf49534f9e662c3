"""ConvInteger and MatMulInteger with the Cast, Mul and Add that real files put after them.

onnxruntime.quantization (quantize_dynamic), tf2onnx, Neural Compressor and ModelOpt write them. The
results equal the literal float arithmetic, in onnxruntime without optimization, to the last bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto

import intonnx
from intonnx.ir.ops.quantize import Dequantize, DynamicQuantize
from support.models import Array, Builder, Params, s8, u8
from support.runtime import run_onnxruntime
from support.wings import Arrays, apart, check_model

F32 = np.float32
RNG = np.random.default_rng(4)


def codes(shape: Sequence[int], dtype: Any, seed: int = 0) -> Array:
    """Any codes, a quarter of them at the ends."""
    rng, info = np.random.default_rng(seed), np.iinfo(dtype)
    anything = rng.integers(info.min, info.max + 1, shape)
    ends = rng.choice(np.asarray([info.min, info.max]), shape)
    return np.asarray(np.where(rng.random(shape) < 0.25, ends, anything), dtype)


def real(*shape: int, seed: int = 1) -> Array:
    """Positive numbers around a hundredth, no powers of two."""
    return np.random.default_rng(seed).uniform(0.001, 0.02, shape).astype(F32)


def product(build: Builder, kind: str, x: str, x_zero: str, w: Array, w_zero: Any) -> str:
    """The integer product of `x` and constant weights."""
    names = [x, build.constant("w", w), x_zero]
    names.append(build.constant("w_zero", np.asarray(w_zero, w.dtype)))
    if kind == "conv":
        return build.node("ConvInteger", names, name="sums", pads=[1, 1, 1, 1])
    return build.node("MatMulInteger", names, name="sums")


X_SHAPE = {"conv": (2, 3, 5, 4), "dense": (2, 5, 6)}
W_SHAPE = {"conv": (4, 3, 3, 3), "dense": (6, 4)}
COLUMN = {"conv": (4, 1, 1), "dense": (4,)}


def cast(build: Builder, sums: str) -> str:
    return build.node("Cast", [sums], name="cast", to=TensorProto.FLOAT)


def pair(first: str, second: str, swapped: bool) -> list[str]:
    return [second, first] if swapped else [first, second]


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("kind", ["conv", "dense"])
def test_a_dynamically_quantized_layer_is_three_operators(
    kind: str, per_channel: bool, swapped: bool
) -> None:
    build = Builder(17)
    x = build.feed("x", X_SHAPE[kind], F32)
    q = build.node("DynamicQuantizeLinear", [x], name="q", results=3)
    weights = codes(W_SHAPE[kind], np.int8)
    sums = product(build, kind, q, f"{q}_2", weights, 3)
    scale = real(*COLUMN[kind]) if per_channel else real()
    scales = build.node("Mul", pair(f"{q}_1", build.constant("w_scale", scale), swapped))
    scaled = build.node("Mul", pair(cast(build, sums), scales, swapped))
    bias = build.constant("bias", RNG.normal(0, 1, COLUMN[kind]).astype(F32))
    build.output(build.node("Add", pair(scaled, bias, swapped), name="y"), F32)
    model = build.model()
    inputs = {"x": RNG.normal(0, 2, X_SHAPE[kind]).astype(F32)}
    graph = check_model(model, inputs, quanta=0, kernel=False)
    names = [node.op.title for node in graph.nodes]
    assert names == [
        "qnn.dynamic_quantize",
        "qnn.conv2d" if kind == "conv" else "qnn.dense",
        "qnn.dequantize",
    ]
    states = {entry.op: entry.state for entry in intonnx.coverage(graph).nodes}
    assert states["Cast"] == states["Mul"] == states["Add"] == "boundary"


@pytest.mark.parametrize("runtime", [False, True])
@pytest.mark.parametrize("shapes", [((), (4,)), ((1,), (1,)), ((), (1, 4)), ((2, 1), ())])
def test_one_product_after_the_other_rounds_twice(
    shapes: tuple[tuple[int, ...], tuple[int, ...]], runtime: bool
) -> None:
    build = Builder(17)
    x = build.feed("x", (2, 6), np.uint8)
    sums = product(build, "dense", x, build.constant("x_zero", np.uint8(7)),
                   codes((6, 4), np.uint8), 100)  # fmt: skip
    value, inputs = cast(build, sums), {"x": codes((2, 6), np.uint8, 5)}
    for index, shape in enumerate(shapes):
        scale = real(*shape, seed=index)
        if runtime:
            inputs[f"s{index}"] = scale
            name = build.feed(f"s{index}", shape, F32)
        else:
            name = build.constant(f"s{index}", scale)
        value = build.node("Mul", [value, name])
    build.output(value, F32)
    graph = check_model(build.model(), inputs, quanta=0, kernel=False)
    (node,) = [node for node in graph.nodes if isinstance(node.op, Dequantize)]
    assert node.op == Dequantize(in_turn=True)
    assert "{in_turn=true}" in str(graph)


def static_model(
    kind: str, storage: Any, weights: Array, *, result: Params | None, bias: Any = None,
    scale: Any = 0.0123, in_turn: bool = False, int_bias: bool = False,
) -> onnx.ModelProto:  # fmt: skip
    """Q -> product -> Cast -> Mul (-> Add) (-> Q) with constant scales."""
    params = Params(storage, 0.031, np.iinfo(storage).max // 2)
    build = Builder(17)
    x = build.quantize(build.feed("x", X_SHAPE[kind], F32), params)
    sums = product(build, kind, x, f"{x}_zero_point", weights, 3)
    if int_bias:
        numbers = np.arange(4).reshape(COLUMN[kind]) * 50 - 70
        sums = build.node("Add", [sums, build.constant("ib", numbers.astype(np.int32))])
    value = cast(build, sums)
    own = build.constant("w_scale", np.asarray(scale, F32))
    if in_turn:
        value = build.node("Mul", [build.node("Mul", [value, f"{x}_scale"]), own])
    else:
        value = build.node("Mul", [value, build.node("Mul", [f"{x}_scale", own])])
    if bias is not None:
        value = build.node("Add", [value, build.constant("bias", np.asarray(bias, F32))])
    if result is None:
        build.output(value, F32)
    else:
        build.output(build.quantize(value, result, "y"), result.dtype)
    return build.model()


@pytest.mark.parametrize("bias", [None, 0.7])
@pytest.mark.parametrize("int_bias", [False, True])
@pytest.mark.parametrize(
    ("kind", "storage"), [("conv", np.uint8), ("dense", np.uint8), ("dense", np.int8)]
)
def test_constant_scales_are_in_the_types(
    kind: str, storage: Any, int_bias: bool, bias: float | None
) -> None:
    weights = codes(W_SHAPE[kind], storage)
    model = static_model(kind, storage, weights, result=None, int_bias=int_bias, bias=bias)
    inputs = {"x": RNG.normal(0, 2, X_SHAPE[kind]).astype(F32)}
    graph = intonnx.import_model(model)
    assert [node.op.title for node in graph.nodes] == [
        "qnn.quantize",
        "qnn.conv2d" if kind == "conv" else "qnn.dense",
        "qnn.dequantize",
    ]
    assert graph.types[graph.nodes[1].results[0]].params.scalar_scale == F32(0.031) * F32(0.0123)
    wanted = run_onnxruntime(model, inputs, optimized=False)
    for numerics in ("qlinear", "qdq"):
        apart(intonnx.compile(graph, numerics=numerics).run(inputs), wanted, 0)
    exported = intonnx.to_onnx(graph)
    for optimized in (False, True):
        apart(run_onnxruntime(exported, inputs, optimized=optimized), wanted, 0)
    apart(intonnx.compile(intonnx.import_model(exported)).run(inputs), wanted, 0)


@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("with_bias", [False, True])
@pytest.mark.parametrize("kind", ["conv", "dense"])
def test_a_quantizer_behind_is_a_requantize(kind: str, with_bias: bool, per_channel: bool) -> None:
    weights = codes(W_SHAPE[kind], np.uint8)
    bias = RNG.normal(0, 1, COLUMN[kind]) if with_bias else None
    model = static_model(
        kind, np.uint8, weights, result=u8(0.31, 120), bias=bias,
        scale=real(*COLUMN[kind]) if per_channel else 0.0123,
    )  # fmt: skip
    inputs = {"x": RNG.normal(0, 2, X_SHAPE[kind]).astype(F32)}
    # A float bias is rounded to half a step of the sums.
    graph = check_model(model, inputs, literal_quanta=int(with_bias))
    assert [node.op.name for node in graph.nodes][2:] == ["qnn.requantize"]


@given(x_scale=st.floats(1e-4, 1), w_scale=st.floats(1e-4, 1))
def test_scales_are_found_again(x_scale: float, w_scale: float) -> None:
    """The product of the scales is folded; the factor beside the known one is found to the bit."""
    build = Builder(17)
    x = build.quantize(build.feed("x", (2, 3), F32), u8(x_scale, 3))
    sums = product(build, "dense", x, f"{x}_zero_point", codes((3, 2), np.uint8), 3)
    scale = build.node("Mul", [f"{x}_scale", build.constant("w_scale", F32(w_scale))])
    build.output(build.node("Mul", [cast(build, sums), scale], name="y"), F32)
    graph = intonnx.import_model(build.model())
    dense = graph.nodes[1]
    assert graph.types[dense.operands[0]].params.scalar_scale == F32(x_scale)
    assert graph.types[dense.results[0]].params.scalar_scale == F32(x_scale) * F32(w_scale)


@pytest.mark.parametrize(
    ("first", "second"), [(0.25, 0.0123), (0.0123, 4.0)], ids=["first", "second"]
)
def test_products_with_a_power_of_two_are_one(first: float, second: float) -> None:
    build = Builder(17)
    x = build.feed("x", (2, 6), np.uint8)
    sums = product(build, "dense", x, build.constant("z", np.uint8(7)), codes((6, 4), np.uint8), 9)
    value = cast(build, sums)
    for index, scale in enumerate((first, second)):
        value = build.node("Mul", [value, build.constant(f"s{index}", F32(scale))])
    build.output(build.quantize(value, s8(0.5, -3), "y"), np.int8)
    graph = check_model(build.model(), {"x": codes((2, 6), np.uint8, 5)}, kernel=False)
    assert all(node.op.kind == "compute" or node.op.name == "qnn.storage_cast"
               for node in graph.nodes)  # fmt: skip


@pytest.mark.parametrize("x_type", [np.uint8, np.int8])
@pytest.mark.parametrize("w_type", [np.uint8, np.int8])
def test_every_mix_of_types_with_row_and_column_zero_points(x_type: Any, w_type: Any) -> None:
    x, w = codes((5, 6), x_type, 2), codes((6, 4), w_type, 3)
    x_zero, w_zero = codes((5,), x_type, 4), codes((4,), w_type, 5)
    build = Builder(17)
    names = [build.feed("x", x.shape, x_type), build.constant("w", w),
             build.constant("x_zero", x_zero), build.constant("w_zero", w_zero)]  # fmt: skip
    sums = build.node("MatMulInteger", names, name="sums")
    scaled = build.node("Mul", [cast(build, sums), build.constant("s", real(1, 4))])
    build.output(build.node("Add", [scaled, build.constant("b", real(4, seed=8))], name="y"), F32)
    graph = intonnx.import_model(build.model())
    assert intonnx.coverage(graph).float == 0
    exact = (x.astype(np.int64) - x_zero[:, None]) @ (w.astype(np.int64) - w_zero)
    wanted = exact.astype(F32) * real(1, 4) + real(4, seed=8)
    # onnxruntime refuses zero points of rows.
    for numerics in ("qlinear", "qdq"):
        found = intonnx.compile(graph, numerics=numerics).run({"x": x})
        apart(found, {"y": wanted}, 0)


def test_a_value_read_in_between_stays() -> None:
    build = Builder(17)
    x = build.feed("x", (2, 6), np.uint8)
    sums = product(build, "dense", x, build.constant("z", np.uint8(7)), codes((6, 4), np.uint8), 9)
    scaled = build.node("Mul", [cast(build, sums), build.feed("s", (), F32)], name="scaled")
    build.output(scaled, F32)
    build.output(build.node("Add", [scaled, build.constant("b", real(4))], name="y"), F32)
    build.output(sums, np.int32)
    inputs: Arrays = {"x": codes((2, 6), np.uint8, 5), "s": real()}
    check_model(build.model(), inputs, quanta=0, kernel=False, floats=1)


@pytest.mark.parametrize("to", [TensorProto.FLOAT16, TensorProto.DOUBLE])
def test_other_float_types_keep_their_arithmetic(to: int) -> None:
    build = Builder(17)
    dtype = onnx.helper.tensor_dtype_to_np_dtype(to)
    x = build.feed("x", (2, 6), np.uint8)
    # Sums that float16 holds.
    weights = codes((6, 4), np.uint8) % np.uint8(7)
    sums = product(build, "dense", x, build.constant("z", np.uint8(7)), weights, 3)
    value = build.node("Cast", [sums], to=to)
    scale = build.constant("s", np.asarray(0.0123, dtype))
    build.output(build.node("Mul", [value, scale], name="y"), dtype)
    model = build.model()
    graph = intonnx.import_model(model)
    (reason,) = [n for n in intonnx.coverage(graph).nodes if n.op == "Cast"]
    assert reason.code == "unsupported-type"
    assert "'sums' is cast from i32" in reason.detail
    assert "put a DequantizeLinear" in reason.detail
    inputs = {"x": codes((2, 6), np.uint8, 5)}
    found = intonnx.compile(graph).run(inputs)
    apart(found, run_onnxruntime(model, inputs, optimized=False), 0)


@pytest.mark.parametrize("name", ["dense", "conv"])
def test_our_own_exports_are_integer_again(name: str) -> None:
    """Sums that no kernel requantizes: written as Cast -> Mul -> QuantizeLinear by 1."""
    build = Builder(17)
    x = build.quantize(build.feed("x", X_SHAPE[name], F32), u8(0.03, 100))
    real_x = build.dequantize(x, u8(0.03, 100), "x_real")
    w = build.dequantize(build.constant("w", codes(W_SHAPE[name], np.int8)), s8(0.02, 0))
    attrs = {"pads": [1, 1, 1, 1]} if name == "conv" else {}
    value = build.node("Conv" if name == "conv" else "MatMul", [real_x, w], **attrs)
    value = build.node(
        "Add", [value, build.constant("b", RNG.normal(0, 2, COLUMN[name]).astype(F32))]
    )
    build.output(build.quantize(value, s8(0.4, -7), "y"), np.int8)
    graph = intonnx.import_model(build.model())
    exported = intonnx.to_onnx(graph, runtime="standard")
    assert {"Cast", "Mul"} <= {node.op_type for node in exported.graph.node}
    again = intonnx.import_model(exported)
    assert intonnx.coverage(again).float == 0
    assert not [n for n in again.nodes if n.op.kind == "boundary" and
                not isinstance(n.op, DynamicQuantize) and n.op.name != "qnn.quantize"]  # fmt: skip
    inputs = {"x": RNG.normal(0, 2, X_SHAPE[name]).astype(F32)}
    apart(intonnx.compile(again).run(inputs), intonnx.compile(graph).run(inputs), 0)


@pytest.mark.parametrize("bias", ["", "constant", "runtime"])
@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("dynamic", [False, True])
def test_sums_behind_a_dequantize_linear(dynamic: bool, per_channel: bool, bias: str) -> None:
    """onnx-quantize writes DequantizeLinear(MatMulInteger(...) + bias, x_scale * w_scale)."""
    build = Builder(21)
    x = build.feed("x", (5, 6), F32)
    if dynamic:
        q = build.node("DynamicQuantizeLinear", [x], name="q", results=3)
        x_scale, x_zero = f"{q}_1", f"{q}_2"
    else:
        q = build.quantize(x, u8(0.03, 90))
        x_scale, x_zero = f"{q}_scale", f"{q}_zero_point"
    sums = product(build, "dense", q, x_zero, codes((6, 4), np.int8), 0)
    if bias == "constant":
        numbers = np.asarray([5, -900, 30, 77777], np.int32)
        sums = build.node("Add", [sums, build.constant("b", numbers)])
    elif bias == "runtime":
        sums = build.node("Add", [build.feed("b", (4,), np.int32), sums])
    own = real(4) if per_channel else real(1)
    scale = build.node("Mul", [x_scale, build.constant("w_scale", own)])
    build.output(build.node("DequantizeLinear", [sums, scale], name="y"), F32)
    inputs = {"x": RNG.normal(0, 2, (5, 6)).astype(F32)}
    if bias == "runtime":
        inputs["b"] = np.asarray([-3, 0, 1 << 20, 9], np.int32)
    model = build.model()
    graph = intonnx.import_model(model)
    entering = "qnn.dynamic_quantize" if dynamic else "qnn.quantize"
    assert [n.op.title for n in graph.nodes] == [entering, "qnn.dense", "qnn.dequantize"]
    assert len(graph.nodes[-1].operands) == (3 if dynamic else 1)
    wanted = run_onnxruntime(model, inputs, optimized=False)
    for numerics in ("qlinear", "qdq"):
        apart(intonnx.compile(graph, numerics=numerics).run(inputs), wanted, 0)
    exported = intonnx.to_onnx(graph)
    apart(run_onnxruntime(exported, inputs, optimized=False), wanted, 0)
    apart(intonnx.compile(intonnx.import_model(exported)).run(inputs), wanted, 0)


def test_runtime_scales_that_stay() -> None:
    """Along another axis than the last, or with a zero point: kept, with the reason."""
    for axis, zero in ((0, None), (1, 3)):
        build = Builder(21)
        x = build.feed("x", (4, 4), np.int32 if zero is None else np.uint8)
        names = [x, build.feed("s", (4,), F32)]
        if zero is not None:
            names.append(build.constant("z", np.full(4, zero, np.uint8)))
        build.output(build.node("DequantizeLinear", names, name="y", axis=axis), F32)
        (entry,) = intonnx.coverage(intonnx.import_model(build.model())).nodes
        assert (entry.state, entry.code) == ("float", "runtime-parameters")
