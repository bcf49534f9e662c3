"""Accumulator ranges are proven: reached by some input, never passed by any."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import intonnx
from intonnx.ir.ranges import accumulator_ranges

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
