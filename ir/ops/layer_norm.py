"""Normalization over the last axes of each item: with the mean, and by the mean square alone."""

from __future__ import annotations

from typing import ClassVar

from intonnx.ir.op import OperandTypes, ResultTypes, register_op
from intonnx.ir.shapes import normalized_axes
from intonnx.ir.types import quantized

from ._normalization import Normalization


class LastAxes(Normalization):
    """A normalization over all axes from `axis` on; a negative one counts from the back."""

    axis: int = -1

    def infer(self, operands: OperandTypes) -> ResultTypes:
        x, shape = self.check_codes(operands)
        normalized_axes(self, [self.axis], len(shape), "C2")
        self.check_factors(operands, shape)
        return (quantized(self.out, x.shape),)


@register_op
class LayerNorm(LastAxes):
    """(x - mean) / sqrt(variance + epsilon) * scale + bias over all axes from `axis` on.

    Operands: `x`, codes; `scale` and `bias`, floats. Result: codes with the parameters `out` in the
    shape of `x`. Source: ONNX LayerNormalization-17, without its results Mean and InvStdDev.

    Constraints:
        C1: `x` is quantized per tensor, in at most 16 bits.
        C2: `axis` is an axis of `x`, whose rank is known.
        C3: `out` is per tensor.
        C4: `scale` and `bias` are floats that broadcast to `x`.
    """

    name: ClassVar[str] = "qnn.layer_norm"


@register_op
class RmsNorm(LastAxes):
    """x / sqrt(mean(x * x) + epsilon) * scale over all axes from `axis` on.

    Operands: `x`, codes; `scale`, floats. Result: codes with the parameters `out` in the shape of
    `x`. Source: ONNX RMSNormalization-23.

    Constraints:
        C1: `x` is quantized per tensor, in at most 16 bits.
        C2: `axis` is an axis of `x`, whose rank is known.
        C3: `out` is per tensor.
        C4: `scale` is floats that broadcast to `x`.
    """

    name: ClassVar[str] = "qnn.rms_norm"
    signature: ClassVar[tuple[str, ...]] = ("x", "scale")
