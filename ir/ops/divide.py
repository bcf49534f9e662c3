"""Quotients of two operands, element by element."""

from __future__ import annotations

from typing import ClassVar

from intonnx.ir.binary import Binary
from intonnx.ir.op import register_op


@register_op
class Divide(Binary):
    """Codes of a / b; shapes broadcast as numpy's do.

    Operands: `a` and `b`, quantized in any way but blocked; or one of them real values of the
    other's expressed type, used as they are. Result: codes with the parameters `out` in the common
    shape. A real value
    divided by zero saturates, and 0 / 0 gives the smallest code.
    Source: ONNX Div-14 between DequantizeLinear and QuantizeLinear; no QLinear operator exists.

    Constraints:
        C1: one operand or both are quantized, not blocked and with at most 32 bits; their real
            values have one float type.
        C2: the shapes broadcast.
        C3: `out` has one scale.
    """

    name: ClassVar[str] = "qnn.divide"
