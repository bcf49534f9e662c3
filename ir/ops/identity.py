"""The same values under another name."""

from __future__ import annotations

from typing import ClassVar

from intonnx.ir.op import Op, OperandTypes, ResultTypes, register_op


@register_op
class Identity(Op):
    """`x` itself: where a graph gives a value that it also gets, or gives one value twice.

    Operands: `x`, any type. Result: the type of `x`. Source: ONNX Identity-21.
    """

    name: ClassVar[str] = "qnn.identity"
    signature: ClassVar[tuple[str, ...]] = ("x",)
    kind: ClassVar[str] = "mover"

    def infer(self, operands: OperandTypes) -> ResultTypes:
        return (self.operand(operands, 0),)
