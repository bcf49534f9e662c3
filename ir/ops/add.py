"""Sums and differences of two operands."""

from __future__ import annotations

from typing import ClassVar

from intonnx.ir.binary import Binary
from intonnx.ir.op import register_op


@register_op
class Add(Binary):
    """Codes of a + b; shapes broadcast as numpy's do.

    Operands: `a` and `b`, quantized in any way but blocked; or one of them real values of the
    other's expressed type, used as they are. Result: codes with the parameters `out` in the common
    shape.
    Source: ONNX Add-14 between DequantizeLinear and QuantizeLinear; com.microsoft QLinearAdd-1,
    whose fused multiply-adds act on raw codes.

    Constraints:
        C1: one operand or both are quantized, not blocked and with at most 32 bits; their real
            values have one float type.
        C2: the shapes broadcast.
        C3: `out` has one scale.
    """

    name: ClassVar[str] = "qnn.add"


@register_op
class Subtract(Binary):
    """Codes of a - b; shapes broadcast as numpy's do.

    Operands, result and constraints: those of `Add`. Source: ONNX Sub-14 between DequantizeLinear
    and QuantizeLinear; no QLinear operator exists.
    """

    name: ClassVar[str] = "qnn.subtract"
