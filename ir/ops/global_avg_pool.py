"""The mean over all spatial axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

from intonnx.ir.bounds import Bounds, sums_of
from intonnx.ir.op import Op, OperandTypes, ResultTypes, register_op
from intonnx.ir.types import Array, QuantParams, quantized, static_shape


class GlobalAvgPool(Op):
    """The mean of each channel, quantized.

    Operands: `x` [N, C, *spatial] ([N, *spatial, C] with `channels_last`), quantized per tensor.
    Result: codes with the parameters `out`, every spatial size 1. An exact sum of x - zero_point,
    then one multiplier x.scale / (out.scale * count).
    Source: ONNX GlobalAveragePool-22; onnxruntime QLinearGlobalAveragePool.

    Constraints:
        C1: `x` is quantized per tensor with codes of 16 bits or fewer and has the operator's rank.
        C2: `out` is per tensor.
    """

    spatial: ClassVar[int]
    signature: ClassVar[tuple[str, ...]] = ("x",)
    channels_last: bool = False
    out: QuantParams

    def accumulator_bounds(
        self, operands: OperandTypes, constants: Sequence[Array | None]
    ) -> Bounds | None:
        shape = self.shape_of(operands, 0, "C1")
        sizes = static_shape(shape[1:-1] if self.channels_last else shape[2:])
        return None if sizes is None else sums_of(self.operand(operands, 0), math.prod(sizes))

    def infer(self, operands: OperandTypes) -> ResultTypes:
        x, shape = self.operand(operands, 0), self.shape_of(operands, 0, "C1")
        given = x.quant is not None and x.quant.per_tensor and x.dtype.bits <= 16
        self.require(given, "C1", f"the operand is {x.dtype}, not quantized per tensor")
        self.require(len(shape) == self.spatial + 2, "C1", f"the rank is {len(shape)}")
        self.require(self.out.per_tensor, "C2", "the result is per axis")
        ones = (1,) * self.spatial
        if self.channels_last:
            return (quantized(self.out, [shape[0], *ones, shape[-1]]),)
        return (quantized(self.out, [*shape[:2], *ones]),)


@register_op
class GlobalAvgPool1d(GlobalAvgPool):
    """See `GlobalAvgPool`, over one spatial axis."""

    name: ClassVar[str] = "qnn.global_avg_pool1d"
    spatial: ClassVar[int] = 1


@register_op
class GlobalAvgPool2d(GlobalAvgPool):
    """See `GlobalAvgPool`, over two spatial axes."""

    name: ClassVar[str] = "qnn.global_avg_pool2d"
    spatial: ClassVar[int] = 2


@register_op
class GlobalAvgPool3d(GlobalAvgPool):
    """See `GlobalAvgPool`, over three spatial axes."""

    name: ClassVar[str] = "qnn.global_avg_pool3d"
    spatial: ClassVar[int] = 3
