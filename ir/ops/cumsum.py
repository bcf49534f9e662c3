"""Running sums along an axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from intonnx.ir.bounds import Bounds, sums_of
from intonnx.ir.op import Op, OperandTypes, ResultTypes, register_op
from intonnx.ir.shapes import normalized_axes
from intonnx.ir.types import Array, accumulator, quantized


@register_op
class CumSum(Op):
    """The exact sums of (x - zero_point) up to each element along `axis`.

    Operands: `x`, codes. Result: an i32 accumulator in the shape of `x` with its scale; sums that
    need more than 32 bits are computed wider. Source: ONNX CumSum-14.

    Attributes:
        axis: the axis along which is added; a negative one counts from the back.
        exclusive: whether an element is left out of its own sum.
        reverse: whether the sum starts at the end of the axis.

    Constraints:
        C1: `x` is quantized per tensor, in at most 16 bits.
        C2: `axis` is an axis of `x`, whose rank is known.
    """

    name: ClassVar[str] = "qnn.cumsum"
    signature: ClassVar[tuple[str, ...]] = ("x",)
    axis: int
    exclusive: bool = False
    reverse: bool = False

    def accumulator_bounds(
        self, operands: OperandTypes, constants: Sequence[Array | None]
    ) -> Bounds | None:
        size = self.shape_of(operands, 0, "C2")[self.axis]
        return sums_of(self.operand(operands, 0), size) if isinstance(size, int) else None

    def infer(self, operands: OperandTypes) -> ResultTypes:
        x = self.operand(operands, 0)
        fits = x.quant is not None and x.quant.per_tensor and x.dtype.bits <= 16
        self.require(fits, "C1", f"the operand is {x.dtype}, or not quantized per tensor")
        normalized_axes(self, [self.axis], len(self.shape_of(operands, 0, "C2")), "C2")
        params = accumulator(x.params.scale, None, expressed=x.params.expressed)
        return (quantized(params, x.shape),)
