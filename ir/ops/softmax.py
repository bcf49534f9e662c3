"""Softmax and its logarithm over quantized rows."""

from __future__ import annotations

from typing import ClassVar

from intonnx.ir.op import Op, OperandTypes, ResultTypes, register_op
from intonnx.ir.types import QuantParams, quantized


@register_op
class Softmax(Op):
    """exp(x - max) / sum(exp(x - max)) over rows of `x`, or the logarithm of that.

    Operands: `x`, codes. Result: codes with the parameters `out` in the shape of `x`. A row runs
    along `axis`; when `flattened`, over all axes from `axis` on, as before opset 13.
    Source: ONNX Softmax-13, Softmax-11 (`flattened`), LogSoftmax-13 (`logarithm`);
    com.microsoft QLinearSoftmax-1.

    Constraints:
        C1: `x` is quantized per tensor, in at most 16 bits.
        C2: `axis` is an axis of `x`, counted from the front.
        C3: `out` is per tensor.
    """

    name: ClassVar[str] = "qnn.softmax"
    signature: ClassVar[tuple[str, ...]] = ("x",)
    axis: int
    flattened: bool = False
    logarithm: bool = False
    out: QuantParams

    def infer(self, operands: OperandTypes) -> ResultTypes:
        x = self.operand(operands, 0)
        fits = x.quant is not None and x.quant.per_tensor and x.dtype.bits <= 16
        self.require(fits, "C1", f"the operand is {x.dtype}, or not quantized per tensor")
        rank = len(self.shape_of(operands, 0, "C2"))
        self.require(0 <= self.axis < rank, "C2", f"axis {self.axis} of {rank}")
        self.require(self.out.per_tensor, "C3", "the result's parameters are not per tensor")
        return (quantized(self.out, x.shape),)
