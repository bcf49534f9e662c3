"""Max pools over one, two and three spatial axes."""

from __future__ import annotations

from typing import ClassVar

from intonnx.ir.op import OperandTypes, ResultTypes, register_op
from intonnx.ir.ops._pool import Pool


class MaxPool(Pool):
    """The largest code of each window; padding holds the smallest code of the storage type.

    Operands: `x` [N, C, *spatial], quantized per tensor or plain integers. Result: the type of `x`
    with the pooled sizes. Scales are positive, so the largest code stands for the largest value.
    Source: ONNX MaxPool-22, without the result `Indices`.

    Constraints:
        C1: `x` holds integers, with one scale when it is quantized, and has the operator's rank.
        C2: kernel, strides, dilations and pads have the operator's length; all but pads are
            positive; a pad is not negative and smaller than the kernel.
        C3: the kernel fits into the padded sizes.
    """

    def infer(self, operands: OperandTypes) -> ResultTypes:
        x, shape = self.operand(operands, 0), self.shape_of(operands, 0, "C1")
        self.require(x.is_integer, "C1", f"the operand is {x.dtype}")
        self.require(x.quant is None or x.quant.per_tensor, "C1", "the operand is per axis")
        self.require(len(shape) == self.spatial + 2, "C1", f"the rank is {len(shape)}")
        self.check_window()
        return (x.with_shape([*shape[:2], *self.pooled(shape[2:])]),)


@register_op
class MaxPool1d(MaxPool):
    """See `MaxPool`, over one spatial axis."""

    name: ClassVar[str] = "qnn.max_pool1d"
    spatial: ClassVar[int] = 1


@register_op
class MaxPool2d(MaxPool):
    """See `MaxPool`, over two spatial axes."""

    name: ClassVar[str] = "qnn.max_pool2d"
    spatial: ClassVar[int] = 2


@register_op
class MaxPool3d(MaxPool):
    """See `MaxPool`, over three spatial axes."""

    name: ClassVar[str] = "qnn.max_pool3d"
    spatial: ClassVar[int] = 3
