"""Comparisons of two operands, element by element."""

from __future__ import annotations

from typing import ClassVar, Literal

from intonnx.ir.binary import RealPair
from intonnx.ir.op import OperandTypes, ResultTypes, register_op
from intonnx.ir.types import DType, plain

Relation = Literal["equal", "less", "less_or_equal", "greater", "greater_or_equal"]


@register_op
class Compare(RealPair):
    """Whether a `relation` b holds; shapes broadcast as numpy's do.

    Operands: `a` and `b`, quantized in any way but blocked; or one of them real values of the
    other's expressed type, used as they are. Result: bool in the common shape. Real values are
    compared, so codes with different parameters can be equal.
    Source: ONNX Equal-19, Less-13, LessOrEqual-16, Greater-13, GreaterOrEqual-16.

    Constraints:
        C1: one operand or both are quantized, not blocked and with at most 32 bits; their real
            values have one float type.
        C2: the shapes broadcast.
    """

    name: ClassVar[str] = "qnn.compare"
    relation: Relation

    def infer(self, operands: OperandTypes) -> ResultTypes:
        return (plain(DType.BOOL, self.common_shape(operands)),)
