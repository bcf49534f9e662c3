"""Look results up in a table."""

from __future__ import annotations

from intonnx.ir.ops.lut import Lut
from intonnx.lowering.requantize import look_up

from .kernel import Context, Kernel, kernels


@kernels.register(Lut, elementwise=True)
def lut(op: Lut, context: Context) -> Kernel:
    """One look-up an element, whatever the numerics: the table is exact for all of them."""
    return lambda operands: (look_up(operands[1], operands[0]),)
