"""Limit codes to a range."""

from __future__ import annotations

from typing import ClassVar

from intonnx.ir.op import Op, OperandTypes, ResultTypes, register_op


@register_op
class Clip(Op):
    """min(max(x, low), high) on codes: Relu, Relu6 and Clip after quantization.

    Operands: `x`, quantized per tensor, sums of any scales or plain integers. Result: the type of
    `x`. A bound at the end of the storage range does not limit, not even sums that leave it.
    Quantization is monotone, so clipping codes by quantized bounds equals quantizing the clipped
    value. Source: ONNX Clip-13.

    Constraints:
        C1: `x` holds integers, with one scale when it is quantized in at most 16 bits.
        C2: `low` and `high` lie in the storage range, `low` <= `high`.
    """

    name: ClassVar[str] = "qnn.clip"
    signature: ClassVar[tuple[str, ...]] = ("x",)
    low: int
    high: int

    def infer(self, operands: OperandTypes) -> ResultTypes:
        x = self.operand(operands, 0)
        self.require(x.is_integer, "C1", f"the operand is {x.dtype}")
        one_scale = x.quant is None or x.quant.per_tensor or x.dtype.bits > 16
        self.require(one_scale, "C1", "the operand is per axis")
        in_range = x.dtype.low <= self.low <= self.high <= x.dtype.high
        self.require(in_range, "C2", f"bounds {self.low}, {self.high} for {x.dtype}")
        return (x,)
