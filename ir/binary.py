"""What the element-wise operators on two operands share."""

from __future__ import annotations

from typing import ClassVar

from .broadcast import broadcast_shape
from .op import Op, OperandTypes, ResultTypes
from .types import Dim, QuantParams, TensorType, quantized


class RealPair(Op):
    """A function of two real values, element by element; shapes broadcast as numpy's do.

    Operands: `a` and `b`, quantized in any way but blocked; or one of them real values of the
    other's expressed type, used as they are.

    Constraints:
        C1: one operand or both are quantized, not blocked and with at most 32 bits; their real
            values have one float type.
        C2: the shapes broadcast.
    """

    signature: ClassVar[tuple[str, ...]] = ("a", "b")

    def common_shape(self, operands: OperandTypes) -> tuple[Dim, ...] | None:
        """The shape of the result, None when a rank is not known; C1 and C2 hold."""
        a, b = self.operand(operands, 0), self.operand(operands, 1)
        for kind in (a, b):
            fits = kind.quant is None or (kind.quant.block is None and kind.dtype.bits <= 32)
            self.require(fits, "C1", f"an operand has blocks or is {kind.dtype}")
        any_quantized = a.quant is not None or b.quant is not None
        one_type = real_type(a) is real_type(b)
        self.require(any_quantized and one_type, "C1", f"the operands are {a.dtype} and {b.dtype}")
        return broadcast_shape(self, (a.shape, b.shape), "C2")


class Binary(RealPair):
    """Codes of f(a, b) for the real values a and b; shapes broadcast as numpy's do.

    Operands: `a` and `b`, quantized in any way but blocked; or one of them real values of the
    other's expressed type, used as they are. Result: codes with the parameters `out` in the common
    shape.

    Constraints:
        C1: one operand or both are quantized, not blocked and with at most 32 bits; their real
            values have one float type.
        C2: the shapes broadcast.
        C3: `out` has one scale.
    """

    out: QuantParams

    def infer(self, operands: OperandTypes) -> ResultTypes:
        """The codes of the common shape."""
        shape = self.common_shape(operands)
        self.require(self.out.per_tensor, "C3", "the result has more than one scale")
        return (quantized(self.out, shape),)


def real_type(kind: TensorType) -> object:
    """The element type of the real values that a tensor stands for."""
    return kind.dtype if kind.quant is None else kind.quant.expressed
