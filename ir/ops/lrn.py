"""Local response normalization: by the squares of neighbouring channels."""

from __future__ import annotations

from typing import ClassVar

from intonnx.ir.op import Op, OperandTypes, ResultTypes, register_op
from intonnx.ir.types import QuantParams, quantized


@register_op
class LocalResponseNorm(Op):
    """x / (bias + alpha / size * squares) ** beta, with the squares of `size` channels around.

    Operands: `x` [N, C, *any], codes. Result: codes with the parameters `out` in the shape of `x`.
    The window of channel c is from c - floor((size - 1) / 2) to c + ceil((size - 1) / 2), cut at
    the ends. Its squares are added as integers; all after that is float64, rounded once.
    Source: ONNX LRN-13.

    Constraints:
        C1: `x` is quantized per tensor, in at most 16 bits, and has rank 2 or more.
        C2: `size` is above 0.
        C3: `out` is per tensor.
    """

    name: ClassVar[str] = "qnn.local_response_norm"
    signature: ClassVar[tuple[str, ...]] = ("x",)
    size: int
    alpha: float = 1e-4
    beta: float = 0.75
    bias: float = 1.0
    out: QuantParams

    def infer(self, operands: OperandTypes) -> ResultTypes:
        x = self.operand(operands, 0)
        fits = x.quant is not None and x.quant.per_tensor and x.dtype.bits <= 16
        self.require(fits, "C1", f"the operand is {x.dtype}, or not quantized per tensor")
        rank = len(self.shape_of(operands, 0, "C1"))
        self.require(rank >= 2, "C1", f"the rank is {rank}")
        self.require(self.size > 0, "C2", f"the size is {self.size}")
        self.require(self.out.per_tensor, "C3", "the result's parameters are not per tensor")
        return (quantized(self.out, x.shape),)
