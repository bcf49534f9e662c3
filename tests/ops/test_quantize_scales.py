"""qnn.dequantize with scales and a bias as operands: constraints and the text form."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import intonnx
from intonnx.ir.errors import TypeFailure
from intonnx.ir.graph import Graph, Node
from intonnx.ir.ops.quantize import Dequantize
from intonnx.ir.types import DType, QuantParams, TensorType, plain, quantized

SUMS = plain(DType.I32, (2, 3))
ONE = plain(DType.F32, ())
ROW = plain(DType.F32, (3,))
HALF = quantized(
    QuantParams(storage=DType.I8, scale=0.5, zero_point=0, expressed=DType.F16), (2, 3)
)
CODES = quantized(QuantParams(storage=DType.I32, scale=0.5, zero_point=0), (2, 3))


@pytest.mark.parametrize(
    "operands",
    [
        [SUMS, ONE],
        [SUMS, ROW, ONE],
        [SUMS, ONE, ROW, plain(DType.F32, (2, 1))],
        [SUMS, plain(DType.F32, None), None, ROW],
        [plain(DType.U8, ("N", 3)), ONE, None, plain(DType.F32, (1, 3))],
        [CODES, None, None, ROW],
    ],
)
def test_result_types(operands: list[TensorType | None]) -> None:
    assert operands[0] is not None
    assert Dequantize().infer(operands) == (plain(DType.F32, operands[0].shape),)


@pytest.mark.parametrize(
    ("op", "constraint", "operands"),
    [
        pytest.param(Dequantize(), "C1", [SUMS, None, ONE], id="c1_no_scale"),
        pytest.param(Dequantize(), "C1", [ROW, ONE], id="c1_float"),
        pytest.param(Dequantize(), "C1", [CODES, ONE], id="c1_two_scales"),
        pytest.param(Dequantize(), "C1", [CODES, None, ONE], id="c1_other_scale"),
        pytest.param(Dequantize(), "C2", [SUMS, plain(DType.F16, ())], id="c2_type"),
        pytest.param(Dequantize(), "C2", [SUMS, plain(DType.F32, (2,))], id="c2_shape"),
        pytest.param(Dequantize(), "C2", [SUMS, plain(DType.F32, (1, 2, 3))], id="c2_rank"),
        pytest.param(
            Dequantize(), "C2", [SUMS, ONE, None, plain(DType.F32, (2,))], id="c2_bias_shape"
        ),
        pytest.param(Dequantize(), "C2", [HALF, None, None, ROW], id="c2_bias_type"),
        pytest.param(Dequantize(in_turn=True), "C3", [SUMS, ONE], id="c3_one_scale"),
        pytest.param(Dequantize(in_turn=True), "C3", [CODES], id="c3_no_scale"),
    ],
)
def test_constraints(op: Dequantize, constraint: str, operands: list[TensorType | None]) -> None:
    with pytest.raises(TypeFailure, match=f"^qnn.dequantize {constraint}: "):
        op.infer(operands)


@pytest.mark.parametrize("in_turn", [False, True])
def test_the_text_form_and_the_arithmetic(in_turn: bool) -> None:
    node = Node(Dequantize(in_turn=in_turn), ("x", "a", "b", "c"), ("y",))
    kinds = {"x": SUMS, "a": ONE, "b": ROW, "c": ROW, "y": plain(DType.F32, (2, 3))}
    graph = Graph("g", ("x", "a", "b", "c"), ("y",), (node,), kinds)
    assert intonnx.parse(str(graph)) == graph
    assert replace(graph, nodes=()) != graph
    x = np.asarray([[1, -(2**31), 2**31 - 1], [16777217, 3, -7]], np.int32)
    a, b, c = np.float32(0.1), np.asarray([0.3, 0.7, 1.1], np.float32), np.float32([1, 2, 3])
    product = x.astype(np.float32) * a * b if in_turn else x.astype(np.float32) * (a * b)
    found = intonnx.compile(graph).run({"x": x, "a": np.asarray(a), "b": b, "c": c})
    np.testing.assert_array_equal(found["y"], product + c)
