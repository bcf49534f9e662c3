"""Max pools over one, two and three spatial axes."""

from __future__ import annotations

from typing import ClassVar, Literal

from intonnx.ir.op import OperandTypes, ResultTypes, register_op
from intonnx.ir.ops._pool import Pool
from intonnx.ir.types import DType, plain


class MaxPool(Pool):
    """The largest code of each window; padding holds the smallest code of the storage type.

    Operands: `x` [N, C, *spatial], quantized per tensor or plain integers. Result: the type of `x`
    with the pooled sizes. Scales are positive, so the largest code stands for the largest value.
    With `indices` a second result, i64 of the same shape: where in `x`, flattened, the first of the
    largest codes of each window is. Source: ONNX MaxPool-22.

    Attributes:
        indices: whether there are indices, and which spatial axis they count first: the last
            ("rows") or the first ("columns", storage_order 1 of ONNX).

    Constraints:
        C1: `x` holds integers, with one scale when it is quantized, and has the operator's rank.
        C2: kernel, strides, dilations and pads have the operator's length; all but pads are
            positive; a pad is not negative and smaller than the kernel.
        C3: the kernel fits into the padded sizes.
    """

    indices: Literal["none", "rows", "columns"] = "none"

    def infer(self, operands: OperandTypes) -> ResultTypes:
        x, shape = self.operand(operands, 0), self.shape_of(operands, 0, "C1")
        self.require(x.is_integer, "C1", f"the operand is {x.dtype}")
        self.require(x.quant is None or x.quant.per_tensor, "C1", "the operand is per axis")
        self.require(len(shape) == self.spatial + 2, "C1", f"the rank is {len(shape)}")
        self.check_window()
        pooled = [*shape[:2], *self.pooled(shape[2:])]
        if self.indices == "none":
            return (x.with_shape(pooled),)
        return x.with_shape(pooled), plain(DType.I64, pooled)


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
