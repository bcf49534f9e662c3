"""The parametric rectifier."""

from __future__ import annotations

from typing import ClassVar

from intonnx.ir.binary import Binary
from intonnx.ir.op import register_op


@register_op
class Prelu(Binary):
    """Codes of a where a is not negative, else of a * b; shapes broadcast as numpy's do.

    Operands: `a` and `b`, quantized in any way but blocked; or one of them real values of the
    other's expressed type, used as they are. Result: codes with the parameters `out` in the common
    shape. `a` is the
    data and `b` the slope.
    Source: ONNX PRelu-16 between DequantizeLinear and QuantizeLinear; no QLinear operator exists.

    Constraints:
        C1: one operand or both are quantized, not blocked and with at most 32 bits; their real
            values have one float type.
        C2: the shapes broadcast.
        C3: `out` has one scale.
    """

    name: ClassVar[str] = "qnn.prelu"
