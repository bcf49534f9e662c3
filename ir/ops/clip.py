"""Limit codes to a range."""

from __future__ import annotations

from typing import ClassVar

from intonnx.ir.op import Op, OperandTypes, ResultTypes, register_op


@register_op
class Clip(Op):
    """min(max(x, low), high) on codes: Relu, Relu6 and Clip after quantization.

    Operands: `x`, quantized per tensor or plain integers. Result: the type of `x`.
    Quantization is monotone, so clipping codes by quantized bounds equals quantizing the clipped
    value. Source: ONNX Clip-13.

    Constraints:
        C1: `x` holds integers, with one scale when it is quantized.
        C2: `low` and `high` lie in the storage range, `low` <= `high`.
    """

    name: ClassVar[str] = "qnn.clip"
    signature: ClassVar[tuple[str, ...]] = ("x",)
    low: int
    high: int

    def infer(self, operands: OperandTypes) -> ResultTypes:
        x = self.operand(operands, 0)
        self.require(x.is_integer, "C1", f"the operand is {x.dtype}")
        self.require(x.quant is None or x.quant.per_tensor, "C1", "the operand is per axis")
        in_range = x.dtype.low <= self.low <= self.high <= x.dtype.high
        self.require(in_range, "C2", f"bounds {self.low}, {self.high} for {x.dtype}")
        return (x,)
