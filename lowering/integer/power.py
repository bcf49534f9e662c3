"""Powers: tables of every pair of 8-bit codes, else literal arithmetic."""

from __future__ import annotations

from functools import partial

from intonnx.ir.float32 import power as float_power
from intonnx.ir.ops.power import Power
from intonnx.ir.types import static_shape
from intonnx.lowering.binary import one_exponent

from ._binary import literal_kernel
from ._fixed_binary import fixed_kernel
from ._fixed_power import power as power_of_whole
from .kernel import Context, Kernel, kernels


@kernels.register(Power)
def power(op: Power, context: Context) -> Kernel:
    """Literal arithmetic; where one exponent serves a row, cubes are two products."""
    if context.numerics == "fixed":
        return fixed_kernel(power_of_whole, op.out, context)
    shapes = [static_shape(context.operand(i).shape) for i in (0, 1)]
    cubes = shapes[0] is not None and shapes[1] is not None and one_exponent(shapes[0], shapes[1])
    return literal_kernel(partial(float_power, cubes=cubes), op.out, context)
