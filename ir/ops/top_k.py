"""The k largest or smallest elements along an axis, and where they were."""

from __future__ import annotations

from typing import ClassVar

from intonnx.ir.op import Op, OperandTypes, ResultTypes, optional_operand, register_op
from intonnx.ir.shapes import normalized_axes
from intonnx.ir.types import UNKNOWN_DIM, Dim, DType, plain


@register_op
class TopK(Op):
    """The `k` largest (or smallest) codes along `axis` in order, the first of equals first.

    Operands: `x`, quantized or plain integers; `count`, a whole number [1] given at run time in
    place of `k`. Results: the codes, the type of `x` with `k` elements along the axis; their
    indices, i64. Scales are positive, so the order of codes is that of the values.
    Source: ONNX TopK-24; onnxruntime's order of equals. The order that `sorted` asks for is one of
    those that are allowed without it.

    Attributes:
        k: how many; None where the operand `count` says it.
        axis: the axis along which elements are compared; a negative one counts from the back.
        largest: whether the largest are wanted, not the smallest.

    Constraints:
        C1: `x` holds integers of at most 16 bits, with one scale when it is quantized.
        C2: `axis` is an axis of `x`, whose rank is known.
        C3: either `k` or `count` is given; `k` is not negative and not above the axis's size.
    """

    name: ClassVar[str] = "qnn.top_k"
    signature: ClassVar[tuple[str, ...]] = ("x", "count?")
    k: int | None = None
    axis: int = -1
    largest: bool = True

    def infer(self, operands: OperandTypes) -> ResultTypes:
        x, shape = self.operand(operands, 0), list(self.shape_of(operands, 0, "C2"))
        count = optional_operand(operands, 1)
        self.require(x.is_integer and x.dtype.bits <= 16, "C1", f"the operand is {x.dtype}")
        self.require(x.quant is None or x.quant.per_tensor, "C1", "the operand is per axis")
        (axis,) = normalized_axes(self, [self.axis], len(shape), "C2")
        self.require((self.k is None) != (count is None), "C3", "not one of k and count")
        self.require(self.k is None or self.k >= 0, "C3", f"k is {self.k}")
        size: Dim = shape[axis]
        fits = self.k is None or isinstance(size, str) or self.k <= size
        self.require(fits, "C3", f"k is {self.k} for an axis of {size} elements")
        shape[axis] = UNKNOWN_DIM if self.k is None else self.k
        return x.with_shape(shape), plain(DType.I64, shape)
