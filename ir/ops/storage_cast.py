"""Give codes their quantization parameters, or take them away: the codes stay as they are."""

from __future__ import annotations

from typing import ClassVar

from intonnx.ir.op import Op, OperandTypes, ResultTypes, register_op
from intonnx.ir.types import QuantParams, TensorType, plain


@register_op
class StorageCast(Op):
    """The same codes with other parameters in the type, or with none.

    Operands: `x`, integers. Result: the codes of `x` with the parameters `out`, or plain integers
    when `out` is None. Where a model feeds integers (a graph input, the result of an integer
    operator) to a DequantizeLinear, this is where they become quantized values. Codes beyond a
    storage range of `out` that is narrower than the type are limited to it, so that a type never
    says what is not so. Source: MLIR `quant.scast`; ONNX Clip-13.

    Constraints:
        C1: `x` holds integers of the storage type of `out`.
        C2: per-axis and blocked parameters of `out` fit the shape of `x`.
    """

    name: ClassVar[str] = "qnn.storage_cast"
    signature: ClassVar[tuple[str, ...]] = ("x",)
    kind: ClassVar[str] = "mover"
    out: QuantParams | None

    def infer(self, operands: OperandTypes) -> ResultTypes:
        x = self.operand(operands, 0)
        self.require(x.is_integer, "C1", f"the operand is {x.dtype}")
        if self.out is None:
            return (plain(x.dtype, x.shape),)
        self.require(
            x.dtype is self.out.storage, "C1", f"{x.dtype} codes, parameters for {self.out.storage}"
        )
        return (self.codes(self.out, x.shape, "C2"),)

    def limits(self, x: TensorType) -> tuple[int, int] | None:
        """The smallest and largest code when codes of this type can lie beyond, else None."""
        if self.out is None:
            return None
        low, high = x.dtype.low, x.dtype.high
        if x.quant is not None:
            low, high = x.quant.qmin, x.quant.qmax
        inside = self.out.qmin <= low and high <= self.out.qmax
        return None if inside else (self.out.qmin, self.out.qmax)
