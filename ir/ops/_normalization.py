"""What normalizations share: codes in and out, statistics in between."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from intonnx.ir.op import Op, OperandTypes, optional_operand
from intonnx.ir.types import Dim, QuantParams, TensorType


class Normalization(Op):
    """(x - mean) / sqrt(variance + epsilon) * scale + bias, quantized.

    The statistics are those of exact integer sums; all after them is float64, rounded once, so that
    a result depends on nothing but the elements that it is normalized with.

    Attributes:
        epsilon: what is added to the variance.
        out: the parameters of the result.
    """

    signature: ClassVar[tuple[str, ...]] = ("x", "scale", "bias?")
    epsilon: float = 1e-5
    out: QuantParams

    def check_codes(self, operands: OperandTypes) -> tuple[TensorType, tuple[Dim, ...]]:
        """The type and shape of `x`. Checks C1 and C3, which every normalization states."""
        x = self.operand(operands, 0)
        fits = x.quant is not None and x.quant.per_tensor and x.dtype.bits <= 16
        self.require(fits, "C1", f"the operand is {x.dtype}, or not quantized per tensor")
        self.require(self.out.per_tensor, "C3", "the result's parameters are not per tensor")
        return x, self.shape_of(operands, 0, "C2")

    def check_factors(self, operands: OperandTypes, shape: Sequence[Dim]) -> None:
        """Check C4: scale and bias are floats whose shapes broadcast to `shape`."""
        for index in (1, 2):
            kind = self.operand(operands, 1) if index == 1 else optional_operand(operands, 2)
            if kind is None:
                continue
            self.require(kind.dtype.is_float, "C4", f"operand {index} is {kind.dtype}")
            sizes = kind.shape or ()
            fits = len(sizes) <= len(shape) and all(
                isinstance(size, str) or isinstance(whole, str) or size in (1, whole)
                for size, whole in zip(reversed(sizes), reversed(shape), strict=False)
            )
            self.require(fits, "C4", f"operand {index} of shape {sizes} for {tuple(shape)}")
