"""The smallest and the largest of several operands, element by element."""

from __future__ import annotations

from typing import ClassVar

from intonnx.ir.broadcast import broadcast_shape
from intonnx.ir.op import OperandTypes, ResultTypes, register_op
from intonnx.ir.selection import Selection


class _Extreme(Selection):
    signature: ClassVar[tuple[str, ...]] = ("inputs*",)

    def infer(self, operands: OperandTypes) -> ResultTypes:
        kinds = [self.operand(operands, i, "C1") for i in range(max(1, len(operands)))]
        shape = broadcast_shape(self, [kind.shape for kind in kinds], "C2")
        return (self.selected(kinds, shape, "C1"),)


@register_op
class Minimum(_Extreme):
    """The smallest of the operands' elements, each requantized to the result's parameters.

    Operands: one or more; shapes broadcast as numpy's do. Either all are quantized and the result
    has the parameters `out`: an operand with just these is used as it is, any other is dequantized
    and quantized, which keeps the order. Or all hold plain integers of one type, `out` is None, and
    so does the result. Source: ONNX Min-13.

    Constraints:
        C1: there is an operand; all are quantized per tensor with codes of 16 bits or fewer and
            `out` is per tensor, or `out` is None and all are plain integers of one type.
        C2: the shapes broadcast.
    """

    name: ClassVar[str] = "qnn.minimum"


@register_op
class Maximum(_Extreme):
    """The largest of the operands' elements, each requantized to the result's parameters.

    Operands, result and constraints: those of `Minimum`. Source: ONNX Max-13.
    """

    name: ClassVar[str] = "qnn.maximum"
