"""Choose between codes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from intonnx.ir.ops.where import Where
from intonnx.ir.types import Array

from ._selection import prepared
from .kernel import Context, Kernel, kernels


@kernels.register(Where)
def where(op: Where, context: Context) -> Kernel:
    """One table a branch at compile time, none for one with the parameters of the result."""
    branches = prepared(op.out, (1, 2), context)

    def run(operands: Sequence[Any]) -> tuple[Array, ...]:
        x, y = branches(operands)
        return (np.where(operands[0], x, y),)

    return run
