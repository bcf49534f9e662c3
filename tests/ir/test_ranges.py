"""Accumulator ranges are proven: reached by some input, never passed by any."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import intonnx
from intonnx import accumulator_ranges
from support.models import Builder, Params, s8, s16, u8, u16

Array = np.ndarray[Any, Any]


def conv_model(w: Array, bias: Array, zero: int, storage: type = np.uint8) -> bytes:
    """QLinearConv 1 x 1 with scales of 1 on codes [1, C, 1, 1]."""
    one = np.asarray(1, np.float32)
    zeros = {"xz": np.asarray(zero, storage), "wz": np.asarray(0, w.dtype)}
    constants = {"one": one, **zeros, "w": w[..., None, None], "b": bias}
    element = TensorProto.UINT8 if storage is np.uint8 else TensorProto.INT8
    graph = helper.make_graph(
        [
            helper.make_node(
                "QLinearConv", ["x", "one", "xz", "w", "one", "wz", "one", "xz", "b"], ["y"], "conv"
            )
        ],
        "conv",
        [helper.make_tensor_value_info("x", element, ["N", w.shape[1], 1, 1])],
        [helper.make_tensor_value_info("y", element, ["N", w.shape[0], 1, 1])],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    return model.SerializeToString()


@pytest.mark.parametrize("zero", [0, 128, 255])
def test_the_bounds_are_reached_and_never_passed(zero: int) -> None:
    w = np.asarray([[127, -128, 3], [-5, -6, -7], [0, 0, 0]], np.int8)
    bias = np.asarray([1000, -2000, 7], np.int32)
    graph = intonnx.import_model(conv_model(w, bias, zero))
    found = accumulator_ranges(graph)[0]
    corners = np.stack(np.meshgrid(*[[0, zero, 255]] * 3), -1).reshape(-1, 3).astype(np.int64)
    sums = (corners - zero) @ w.astype(np.int64).T + bias
    assert found.name == "conv"
    assert found.low == tuple(sums.min(axis=0))
    assert found.high == tuple(sums.max(axis=0))
    assert found.int32_overflow == (False, False, False)


def test_a_sum_beyond_int32_is_reported_and_computed_wider() -> None:
    w = np.ones((2, 1), np.int8)
    bias = np.asarray([2**31 - 1, 5], np.int32)
    graph = intonnx.import_model(conv_model(w, bias, 0))
    assert accumulator_ranges(graph)[0].int32_overflow == (True, False)
    codes = np.full((1, 1, 1, 1), 200, np.uint8)
    accumulator = accumulator_ranges(graph)[0].value
    executable = intonnx.compile(graph)
    result = executable.run({"x": codes})["y"]
    traced = executable.trace({"x": codes})[accumulator].reshape(-1)
    assert traced.tolist() == [2**31 - 1 + 200, 205]
    assert graph.types[accumulator].dtype == "i32"
    assert result.reshape(-1).tolist() == [255, 205]


@pytest.mark.parametrize(
    ("row", "saturates"),
    [([127, 127], True), ([64, 64], False), ([64, 65], True), ([127, -128], False),
     ([-64, -64], False), ([-64, -65], True), ([0, 127], False)],
)  # fmt: skip
def test_int16_saturation_is_that_of_the_worst_pair(row: list[int], saturates: bool) -> None:
    w, bias = np.asarray([row], np.int8), np.zeros(1, np.int32)
    assert max(255 * row[0] + 255 * row[1], -255 * (row[0] + row[1]) - 1) > 32767 or not saturates
    unsigned = accumulator_ranges(intonnx.import_model(conv_model(w, bias, 0)))[0]
    assert unsigned.int16_saturation == (saturates,)
    signed = accumulator_ranges(intonnx.import_model(conv_model(w, bias, 0, np.int8)))[0]
    assert signed.int16_saturation == (False,)


def test_unsigned_weights_never_saturate_beside_unsigned_activations() -> None:
    w, bias = np.full((1, 2), 255, np.uint8), np.zeros(1, np.int32)
    assert accumulator_ranges(intonnx.import_model(conv_model(w, bias, 0)))[0].int16_saturation == (
        False,
    )


def product(
    op: str, shape: tuple[int, ...], w: Array | tuple[int, ...], a: Params, b: Params,
    bias: Array | None = None, **attributes: Any,
) -> onnx.ModelProto:  # fmt: skip
    """One operator on codes with scales of 1; `w` is a constant, or the shape of an input."""
    build = Builder(opset=21)
    x = build.dequantize(build.feed("x", shape, a.dtype), a)
    if isinstance(w, tuple):
        right = build.dequantize(build.feed("w", w, b.dtype), b)
    else:
        right = build.dequantize(build.constant("w", w), b)
    operands = [x, right] + ([] if bias is None else [build.constant("bias", bias)])
    value = build.node(op, operands, name="product", **attributes)
    build.output(build.quantize(value, Params(a.dtype, 1e6, 0), "y"), a.dtype)
    return build.model()


def reached(graph: intonnx.Graph, w: Array | None, extremes: list[Array]) -> Array:
    """The accumulator for every one of these codes of `x`, [inputs, ...]."""
    executable = intonnx.compile(graph)
    (entry,) = accumulator_ranges(graph)
    fed = [{"x": codes} if w is None else {"x": codes, "w": w} for codes in extremes]
    return np.stack([executable.trace(inputs)[entry.value] for inputs in fed]).astype(np.int64)


def greedy(sign: Array, low: int, high: int, dtype: Any) -> Array:
    """Codes that make the sum with weights of these signs as large as it can be."""
    return np.where(sign > 0, high, low).astype(dtype)


def test_a_transposed_convolution_adds_what_meets_in_one_cell() -> None:
    rng = np.random.default_rng(3)
    w = rng.integers(-128, 128, (3, 2, 3, 3)).astype(np.int8)
    bias = np.asarray([300.0, -7.0], np.float32)
    model = product("ConvTranspose", (1, 3, 5, 5), w, u8(1.0, 100), s8(1.0), bias, strides=[2, 2])
    graph = intonnx.import_model(model)
    (entry,) = accumulator_ranges(graph)
    assert entry.op == "qnn.conv2d_transpose"
    found: list[Array] = []
    for channel in range(2):
        for phase in ((0, 0), (0, 1), (1, 0), (1, 1)):
            for sign in (1, -1):
                codes = np.full((1, 3, 5, 5), 100, np.uint8)
                for i in range(5):
                    for j in range(5):
                        # Cells 4 and 5 of the result are reached by cells 1 and 2 of the input.
                        ki, kj = 4 + phase[0] - 2 * i, 4 + phase[1] - 2 * j
                        if 0 <= ki < 3 and 0 <= kj < 3:
                            codes[0, :, i, j] = greedy(
                                sign * w[:, channel, ki, kj], 0, 255, np.uint8
                            )
                found.append(codes)
    sums = reached(graph, None, found)
    assert entry.low == tuple(sums.min(axis=(0, 1, 3, 4)))
    assert entry.high == tuple(sums.max(axis=(0, 1, 3, 4)))


def test_batches_of_matrices_share_their_columns() -> None:
    rng = np.random.default_rng(4)
    w = rng.integers(-128, 128, (3, 4, 2)).astype(np.int8)
    graph = intonnx.import_model(product("MatMul", (3, 1, 4), w, u8(1.0, 10), s8(1.0, 3)))
    (entry,) = accumulator_ranges(graph)
    centred = w.astype(int) - 3
    found = [greedy(sign * centred[:, :, c][:, None], 0, 255, np.uint8)
             for sign in (1, -1) for c in range(2)]  # fmt: skip
    sums = reached(graph, None, found)
    assert entry.low == tuple(sums.min(axis=(0, 1, 2)))
    assert entry.high == tuple(sums.max(axis=(0, 1, 2)))
    assert entry.int16_saturation == (True, True)


@pytest.mark.parametrize(("storage", "k", "overflows"), [(u16, 1, True), (u8, 4, False)])
def test_weights_that_are_computed_at_run_time(storage: Any, k: int, overflows: bool) -> None:
    params = storage(1.0)
    top = np.iinfo(params.dtype).max
    graph = intonnx.import_model(product("MatMul", (1, k), (k, 3), params, params))
    (entry,) = accumulator_ranges(graph)
    full = np.full((k, 3), top, params.dtype)
    sums = reached(graph, full, [np.zeros((1, k), params.dtype), full.T[:1]])
    assert (entry.low, entry.high) == ((sums.min(),), (sums.max(),))
    assert entry.int32_overflow == (overflows,)


@pytest.mark.parametrize(("a", "b", "saturates"), [(u8, s8, True), (s8, u8, True), (u8, u8, False),
                                                   (s8, s8, False), (s16, s8, False)])  # fmt: skip
def test_runtime_products_saturate_where_one_side_is_unsigned(
    a: Any, b: Any, saturates: bool
) -> None:
    graph = intonnx.import_model(product("MatMul", (1, 4), (4, 3), a(1.0), b(1.0)))
    assert accumulator_ranges(graph)[0].int16_saturation == (saturates,)


def test_blocks_are_bounded_each() -> None:
    build = Builder(opset=21)
    x = build.dequantize(build.feed("x", (1, 5), np.uint8), u8(1.0, 3))
    w = np.asarray([[127, 1], [-128, 1], [5, 1], [6, -100], [7, 1]], np.int8)
    build.constant("w", w)
    build.constant("s", np.ones((3, 2), np.float32))
    right = build.node("DequantizeLinear", ["w", "s"], axis=0, block_size=2)
    build.output(build.quantize(build.node("MatMul", [x, right]), u8(9.0), "y"), np.uint8)
    (entry,) = accumulator_ranges(intonnx.import_model(build.model()))
    assert entry.op == "qnn.blocked_dense"
    assert entry.low == (-128 * 252 - 3 * 127, -100 * 252 - 3)
    assert entry.high == (127 * 252 + 128 * 3, max(2 * 252, 252 + 300))
    assert entry.worst_channel == 0
    assert entry.bits == 16


@pytest.mark.parametrize("op", ["ReduceSum", "ReduceMean", "CumSum", "GlobalAveragePool", "Einsum"])
def test_sums_of_codes(op: str) -> None:
    build = Builder(opset=21)
    x = build.dequantize(build.feed("x", (2, 3, 40000), np.int16), s16(1.0, -1))
    axis = build.constant("axis", np.asarray([2] if op != "CumSum" else 2))
    operands = [x] if op in ("GlobalAveragePool", "Einsum") else [x, axis]
    attributes = {"equation": "abc->ab"} if op == "Einsum" else {}
    value = build.node(op, operands, **attributes)
    build.output(build.quantize(value, s16(1e5, 0), "y"), np.int16)
    (entry,) = accumulator_ranges(intonnx.import_model(build.model()))
    assert (entry.low, entry.high) == ((-32767 * 40000,), (32768 * 40000,))
    assert entry.int32_overflow == (False,)
    assert entry.bits == 32


def test_a_sum_of_unknown_length_has_no_entry() -> None:
    build = Builder(opset=21)
    x = build.dequantize(build.feed("x", (2, "n"), np.uint8), u8(1.0, 3))
    value = build.node("ReduceSum", [x, build.constant("axis", np.asarray([1]))])
    build.output(build.quantize(value, u8(1e5, 0), "y"), np.uint8)
    assert accumulator_ranges(intonnx.import_model(build.model())) == ()
