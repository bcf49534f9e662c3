"""Quantize, dequantize, requantize and dynamic quantize: constraints and result types."""

from __future__ import annotations

import pytest

from intonnx.ir.errors import TypeFailure
from intonnx.ir.op import Op
from intonnx.ir.ops.quantize import Dequantize, DynamicQuantize, Quantize, Requantize
from intonnx.ir.types import DType, QuantParams, TensorType, plain, quantized

U8 = QuantParams(storage=DType.U8, scale=0.5, zero_point=128)
HALF = QuantParams(storage=DType.I8, scale=0.5, zero_point=0, expressed=DType.F16)
AXIS = QuantParams(storage=DType.I8, scale=[1, 2, 3], zero_point=[0, 0, 0], axis=1)
FLOAT = plain(DType.F32, ("N", 3))


@pytest.mark.parametrize(
    ("op", "operand", "results"),
    [
        (Quantize(out=U8), FLOAT, [quantized(U8, ("N", 3))]),
        (Quantize(out=AXIS), FLOAT, [quantized(AXIS, ("N", 3))]),
        (Quantize(out=AXIS), plain(DType.F16, ("N", "C")), [quantized(AXIS, ("N", "C"))]),
        (Quantize(out=AXIS), plain(DType.F32, None), [quantized(AXIS, None)]),
        (Dequantize(), quantized(AXIS, (2, 3)), [plain(DType.F32, (2, 3))]),
        (Dequantize(), quantized(HALF, ()), [plain(DType.F16, ())]),
        (Requantize(out=U8), quantized(AXIS, (2, 3)), [quantized(U8, (2, 3))]),
        (
            DynamicQuantize(),
            FLOAT,
            [plain(DType.U8, ("N", 3)), plain(DType.F32, ()), plain(DType.U8, ())],
        ),
    ],
)
def test_result_types(op: Op, operand: TensorType, results: list[TensorType]) -> None:
    assert list(op.infer([operand])) == results


@pytest.mark.parametrize(
    ("op", "constraint", "operand"),
    [
        pytest.param(Quantize(out=U8), "C1", plain(DType.I32, (2,)), id="quantize_c1"),
        pytest.param(Quantize(out=U8), "C1", quantized(U8, (2,)), id="quantize_c1_codes"),
        pytest.param(Quantize(out=AXIS), "C2", plain(DType.F32, (2,)), id="quantize_c2_rank"),
        pytest.param(Quantize(out=AXIS), "C2", plain(DType.F32, (2, 4)), id="quantize_c2_length"),
        pytest.param(Dequantize(), "C1", FLOAT, id="dequantize_c1"),
        pytest.param(Dequantize(), "C1", plain(DType.U8, (2,)), id="dequantize_c1_plain"),
        pytest.param(Requantize(out=U8), "C1", FLOAT, id="requantize_c1"),
        pytest.param(Requantize(out=AXIS), "C2", quantized(U8, (2,)), id="requantize_c2_rank"),
        pytest.param(Requantize(out=AXIS), "C2", quantized(U8, (2, 4)), id="requantize_c2_length"),
        pytest.param(DynamicQuantize(), "C1", plain(DType.F16, ()), id="dynamic_quantize_c1"),
    ],
)
def test_constraints(op: Op, constraint: str, operand: TensorType) -> None:
    with pytest.raises(TypeFailure, match=f"^{op.name} {constraint}: ") as caught:
        op.infer([operand])
    assert caught.value.constraint == constraint


@pytest.mark.parametrize("op", [Quantize(out=U8), Dequantize(), Requantize(out=U8)])
def test_c0_the_operand_is_given(op: Op) -> None:
    with pytest.raises(TypeFailure, match="C0: operand 0 is missing"):
        op.infer([None])
