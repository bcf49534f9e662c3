"""Average pools over one, two and three spatial axes."""

from __future__ import annotations

from typing import ClassVar

from intonnx.ir.op import OperandTypes, ResultTypes, register_op
from intonnx.ir.ops._pool import Pool
from intonnx.ir.types import QuantParams, quantized


class AvgPool(Pool):
    """The mean of each window, quantized.

    Operands: `x` [N, C, *spatial] ([N, *spatial, C] with `channels_last`), quantized per tensor.
    Result: codes with the parameters `out`, the spatial sizes pooled. The cells of a window are
    dequantized and added in row order in float32, the sum is divided by their number.
    Source: ONNX AveragePool-22; onnxruntime QLinearAveragePool, which divides by the whole kernel
    with `count_include_pad` even where a window reaches beyond the padding.

    Attributes:
        count_include_pad: whether cells of the padding count, as real zeros. Cells beyond the
            padding, which `ceil_mode` lets a window reach, never count.
        channels_last: whether the channels are the last axis.
        out: the parameters of the result.

    Constraints:
        C1: `x` is quantized per tensor with codes of 16 bits or fewer and has the operator's rank.
        C2: kernel, strides, dilations and pads have the operator's length; all but pads are
            positive; a pad is not negative and smaller than the kernel.
        C3: the kernel fits into the padded sizes.
        C4: `out` is per tensor.
    """

    count_include_pad: bool = False
    channels_last: bool = False
    out: QuantParams

    def infer(self, operands: OperandTypes) -> ResultTypes:
        x, shape = self.operand(operands, 0), self.shape_of(operands, 0, "C1")
        given = x.quant is not None and x.quant.per_tensor and x.dtype.bits <= 16
        self.require(given, "C1", f"the operand is {x.dtype}, not quantized per tensor")
        self.require(len(shape) == self.spatial + 2, "C1", f"the rank is {len(shape)}")
        self.check_window()
        self.require(self.out.per_tensor, "C4", "the result is per axis")
        if self.channels_last:
            return (quantized(self.out, [shape[0], *self.pooled(shape[1:-1]), shape[-1]]),)
        return (quantized(self.out, [*shape[:2], *self.pooled(shape[2:])]),)


@register_op
class AvgPool1d(AvgPool):
    """See `AvgPool`, over one spatial axis."""

    name: ClassVar[str] = "qnn.avg_pool1d"
    spatial: ClassVar[int] = 1


@register_op
class AvgPool2d(AvgPool):
    """See `AvgPool`, over two spatial axes."""

    name: ClassVar[str] = "qnn.avg_pool2d"
    spatial: ClassVar[int] = 2


@register_op
class AvgPool3d(AvgPool):
    """See `AvgPool`, over three spatial axes."""

    name: ClassVar[str] = "qnn.avg_pool3d"
    spatial: ClassVar[int] = 3
