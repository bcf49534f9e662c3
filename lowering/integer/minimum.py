"""The smallest and the largest code."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from intonnx.ir.ops.minimum import Maximum, Minimum
from intonnx.ir.types import Array

from ._selection import prepared
from .kernel import Context, Kernel, kernels


@kernels.register(Minimum, Maximum)
def extreme(op: Minimum | Maximum, context: Context) -> Kernel:
    """Quantizing keeps the order, so codes with one set of parameters are compared."""
    function = np.minimum if isinstance(op, Minimum) else np.maximum
    codes = prepared(op.out, range(len(context.operands)), context)

    def run(operands: Sequence[Any]) -> tuple[Array, ...]:
        return (np.asarray(reduce(function, codes(operands))),)

    return run
