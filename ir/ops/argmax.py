"""The index of the largest or smallest element along an axis."""

from __future__ import annotations

from typing import ClassVar

from intonnx.ir.op import Op, OperandTypes, ResultTypes, register_op
from intonnx.ir.shapes import normalized_axes
from intonnx.ir.types import DType, plain


class Arg(Op):
    """The index of the extreme code along `axis`, which is that of the extreme value.

    Operands: `x`, quantized or plain integers. Result: i64, `x` without the axis or with size 1
    there. Scales are positive, so the order of codes is that of the values.
    Source: ONNX ArgMax-13, ArgMin-13.

    Attributes:
        axis: the axis along which indices count; a negative one counts from the back.
        keepdims: whether it stays as an axis of size 1.
        select_last_index: whether the last of equal elements is meant, not the first.

    Constraints:
        C1: `x` holds integers of at most 16 bits, with one scale when it is quantized.
        C2: `axis` is an axis of `x`, whose rank is known.
        C3: the axis is not empty.
    """

    signature: ClassVar[tuple[str, ...]] = ("x",)
    axis: int = 0
    keepdims: bool = True
    select_last_index: bool = False

    def infer(self, operands: OperandTypes) -> ResultTypes:
        x, shape = self.operand(operands, 0), self.shape_of(operands, 0, "C2")
        self.require(x.is_integer and x.dtype.bits <= 16, "C1", f"the operand is {x.dtype}")
        self.require(x.quant is None or x.quant.per_tensor, "C1", "the operand is per axis")
        (axis,) = normalized_axes(self, [self.axis], len(shape), "C2")
        self.require(shape[axis] != 0, "C3", f"axis {axis} has no elements")
        kept = (1,) if self.keepdims else ()
        return (plain(DType.I64, (*shape[:axis], *kept, *shape[axis + 1 :])),)


@register_op
class ArgMax(Arg):
    """See `Arg`: of the largest."""

    name: ClassVar[str] = "qnn.argmax"


@register_op
class ArgMin(Arg):
    """See `Arg`: of the smallest."""

    name: ClassVar[str] = "qnn.argmin"
