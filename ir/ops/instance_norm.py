"""Normalization over the spatial axes of each channel, or of each group of channels."""

from __future__ import annotations

from typing import ClassVar

from intonnx.ir.op import OperandTypes, ResultTypes, register_op
from intonnx.ir.types import quantized

from ._normalization import Normalization


class Channels(Normalization):
    """A normalization of [N, C, *spatial] with a scale and a bias for each channel."""

    def infer(self, operands: OperandTypes) -> ResultTypes:
        x, shape = self.check_codes(operands)
        self.require(len(shape) >= 2, "C2", f"the rank is {len(shape)}")
        for index in (1, 2):
            rank = self.operand(operands, index).rank
            self.require(rank in (None, 1), "C4", f"operand {index} has rank {rank}")
        self.check_factors(operands, shape[1:2])
        return (quantized(self.out, x.shape),)


@register_op
class InstanceNorm(Channels):
    """(x - mean) / sqrt(variance + epsilon) * scale + bias over the spatial axes of each channel.

    Operands: `x` [N, C, *spatial], codes; `scale` and `bias` [C], floats. Result: codes with the
    parameters `out` in the shape of `x`. Source: ONNX InstanceNormalization-22.

    Constraints:
        C1: `x` is quantized per tensor, in at most 16 bits.
        C2: `x` has rank 2 or more.
        C3: `out` is per tensor.
        C4: `scale` and `bias` are floats [C] or [1].
    """

    name: ClassVar[str] = "qnn.instance_norm"
    signature: ClassVar[tuple[str, ...]] = ("x", "scale", "bias")


@register_op
class GroupNorm(Channels):
    """As `InstanceNorm`, over the spatial axes and channels of each of `groups` equal groups.

    Operands: `x` [N, C, *spatial], codes; `scale` and `bias` [C], floats. Result: codes with the
    parameters `out` in the shape of `x`. Source: ONNX GroupNormalization-21.

    Constraints:
        C1: `x` is quantized per tensor, in at most 16 bits.
        C2: `x` has rank 2 or more; `groups` is above 0 and divides its channels.
        C3: `out` is per tensor.
        C4: `scale` and `bias` are floats [C] or [1].
    """

    name: ClassVar[str] = "qnn.group_norm"
    signature: ClassVar[tuple[str, ...]] = ("x", "scale", "bias")
    groups: int

    def infer(self, operands: OperandTypes) -> ResultTypes:
        (kind,) = super().infer(operands)
        channels = kind.shape[1] if kind.shape else "C"
        fits = self.groups > 0 and (isinstance(channels, str) or channels % self.groups == 0)
        self.require(fits, "C2", f"{self.groups} groups of {channels} channels")
        return (kind,)
