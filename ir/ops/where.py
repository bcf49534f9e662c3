"""Choose between two tensors, element by element."""

from __future__ import annotations

from typing import ClassVar

from intonnx.ir.broadcast import broadcast_shape
from intonnx.ir.op import OperandTypes, ResultTypes, register_op
from intonnx.ir.selection import Selection
from intonnx.ir.types import DType


@register_op
class Where(Selection):
    """`x` where `condition` holds, `y` elsewhere, each requantized to the result's parameters.

    Operands: `condition`, bool; `x` and `y`; the three shapes broadcast as numpy's do. Either `x`
    and `y` are quantized and the result has the parameters `out`: an operand with just these is
    used as it is, any other is dequantized and quantized. Or they hold plain integers of one type,
    `out` is None, and so does the result.
    Source: ONNX Where-16; com.microsoft QLinearWhere-1.

    Constraints:
        C1: `x` and `y` are quantized per tensor with codes of 16 bits or fewer and `out` is per
            tensor, or `out` is None and both are plain integers of one type.
        C2: the shapes broadcast.
        C3: `condition` is bool.
    """

    name: ClassVar[str] = "qnn.where"
    signature: ClassVar[tuple[str, ...]] = ("condition", "x", "y")

    def infer(self, operands: OperandTypes) -> ResultTypes:
        condition, x, y = (self.operand(operands, index) for index in range(3))
        self.require(condition.dtype is DType.BOOL, "C3", f"the condition is {condition.dtype}")
        shape = broadcast_shape(self, [condition.shape, x.shape, y.shape], "C2")
        return (self.selected([x, y], shape, "C1"),)
