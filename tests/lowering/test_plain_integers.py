"""Operators on plain integers, which shapes are computed with: without onnx, as in onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper

import intonnx
from intonnx.lowering.executable import needs_onnx
from support.models import Array
from support.runtime import run_onnxruntime

I64 = np.int64


def ints(*shape: int, low: int = -9, high: int = 9) -> Array:
    return np.random.default_rng(5).integers(low, high, shape, I64)


A, B = ints(2, 3), ints(3, low=1)
BOOLS = ints(2, 3) > 0
CASES: dict[str, tuple[str, list[Array], dict[str, Any], int]] = {
    "abs": ("Abs", [A], {}, 17),
    "add": ("Add", [A, B], {}, 17),
    "add-wraps": ("Add", [np.array([2**63 - 1], I64), np.array([1], I64)], {}, 17),
    "and": ("And", [BOOLS, BOOLS[0]], {}, 17),
    "cast-to-bool": ("Cast", [A], {"to": 9}, 17),
    "cast-to-i32": ("Cast", [A], {"to": 6}, 17),
    "cast-wraps": ("Cast", [np.array([2**31 + 5, -(2**40) + 1], I64)], {"to": 6}, 17),
    "concat": ("Concat", [A, A], {"axis": -1}, 17),
    "div": ("Div", [A, B], {}, 17),
    "div-negative": ("Div", [A, -B], {}, 17),
    "equal": ("Equal", [A, B], {}, 17),
    "expand": ("Expand", [B, np.array([2, 1], I64)], {}, 17),
    "gather": ("Gather", [A, np.array([-1, 0], I64)], {"axis": 1}, 17),
    "gather-scalar": ("Gather", [A, np.array(1, I64)], {}, 17),
    "greater": ("Greater", [A, B], {}, 17),
    "greater-or-equal": ("GreaterOrEqual", [A, B], {}, 17),
    "identity": ("Identity", [A], {}, 17),
    "less": ("Less", [A, B], {}, 17),
    "less-or-equal": ("LessOrEqual", [A, B], {}, 17),
    "max": ("Max", [A, B, A[:1]], {}, 17),
    "min": ("Min", [A, B, A[:1]], {}, 17),
    "mul": ("Mul", [A, B], {}, 17),
    "neg": ("Neg", [A], {}, 17),
    "not": ("Not", [BOOLS], {}, 17),
    "or": ("Or", [BOOLS, BOOLS[0]], {}, 17),
    "range": ("Range", [np.array(n, I64) for n in (7, -2, -3)], {}, 17),
    "reduce-max": ("ReduceMax", [A], {"axes": [1], "keepdims": 0}, 17),
    "reduce-min": ("ReduceMin", [A, np.array([0], I64)], {}, 18),
    "reduce-prod": ("ReduceProd", [A], {}, 17),
    "reduce-sum": ("ReduceSum", [A, np.array([-1], I64)], {"keepdims": 0}, 17),
    "reduce-sum-noop": ("ReduceSum", [A], {"noop_with_empty_axes": 1}, 17),
    "shape": ("Shape", [A], {}, 17),
    "shape-part": ("Shape", [ints(2, 3, 4)], {"start": -2, "end": 5}, 17),
    "size": ("Size", [A], {}, 17),
    "slice": ("Slice", [A, *(np.array(n, I64) for n in ([0, -2], [2**31, -1], [0, 1]))], {}, 17),
    "slice-back": (
        "Slice", [A, *(np.array(n, I64) for n in ([-1], [-(2**63)], [1], [-2]))], {}, 17,
    ),
    "slice-before-the-first": (
        "Slice", [A, *(np.array(n, I64) for n in ([-9], [-99], [1], [-1]))], {}, 17,
    ),
    "squeeze": ("Squeeze", [A[:1]], {}, 17),
    "squeeze-axes": ("Squeeze", [A[:1, None], np.array([0], I64)], {}, 17),
    "squeeze-11": ("Squeeze", [A[:1, None]], {"axes": [-2]}, 11),
    "sub": ("Sub", [A, B], {}, 17),
    "transpose": ("Transpose", [ints(2, 3, 4)], {"perm": [2, 0, 1]}, 17),
    "transpose-default": ("Transpose", [A], {}, 17),
    "unsqueeze": ("Unsqueeze", [A, np.array([0, -1], I64)], {}, 17),
    "unsqueeze-11": ("Unsqueeze", [A], {"axes": [1]}, 11),
    "where": ("Where", [BOOLS, A, B], {}, 17),
    "xor": ("Xor", [BOOLS, BOOLS[0]], {}, 17),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_as_in_onnxruntime(case: tuple[str, list[Array], dict[str, Any], int]) -> None:
    op_type, arrays, attributes, opset = case
    feeds = {f"x{index}": array for index, array in enumerate(arrays)}
    node = helper.make_node(op_type, list(feeds), ["y"], **attributes)
    values = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
        )
        for name, array in feeds.items()
    ]
    body = helper.make_graph([node], "g", values, [helper.make_empty_tensor_value_info("y")])
    ids = [helper.make_opsetid("", opset)]
    model = helper.make_model(body, opset_imports=ids, ir_version=8)
    graph = intonnx.import_model(model)
    assert not any(needs_onnx(graph, kept) for kept in graph.nodes)
    found = intonnx.compile(graph).run(feeds)["y"]
    wanted = run_onnxruntime(model, feeds, optimized=False)["y"]
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    np.testing.assert_array_equal(found, wanted)


def test_a_division_by_zero_is_an_error() -> None:
    zero = helper.make_tensor_value_info("x", 7, [1])
    body = helper.make_graph(
        [helper.make_node("Div", ["x", "x"], ["y"], name="quotient")],
        "g", [zero], [helper.make_tensor_value_info("y", 7, [1])],
    )  # fmt: skip
    model = helper.make_model(body, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    executable = intonnx.compile(intonnx.import_model(model))
    with pytest.raises(intonnx.RunFailure, match="quotient"):
        executable.run({"x": np.zeros(1, I64)})
