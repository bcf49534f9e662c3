"""Powers of two operands, element by element."""

from __future__ import annotations

from typing import ClassVar

from intonnx.ir.binary import Binary
from intonnx.ir.op import register_op


@register_op
class Power(Binary):
    """Codes of a to the power b; shapes broadcast as numpy's do.

    Operands: `a` and `b`, quantized in any way but blocked; or one of them real values of the
    other's expressed type, used as they are. Result: codes with the parameters `out` in the common
    shape. Powers
    are rounded correctly, and one that is no number gives the smallest code.
    Source: ONNX Pow-15 between DequantizeLinear and QuantizeLinear; no QLinear operator exists.

    Constraints:
        C1: one operand or both are quantized, not blocked and with at most 32 bits; their real
            values have one float type.
        C2: the shapes broadcast.
        C3: `out` has one scale.
    """

    name: ClassVar[str] = "qnn.power"
