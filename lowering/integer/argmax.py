"""Indices of extreme codes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from intonnx.ir.ops.argmax import ArgMax, ArgMin
from intonnx.ir.types import Array

from .kernel import Context, Kernel, kernels


@kernels.register(ArgMax, ArgMin)
def arg(op: ArgMax | ArgMin, context: Context) -> Kernel:
    """The first of equals is found; the last one is the first of the mirrored axis."""
    find = np.argmax if isinstance(op, ArgMax) else np.argmin

    def run(operands: Sequence[Any]) -> tuple[Array, ...]:
        x: Array = operands[0]
        if not op.select_last_index:
            return (np.asarray(find(x, axis=op.axis, keepdims=op.keepdims)),)
        found = find(np.flip(x, op.axis), axis=op.axis, keepdims=op.keepdims)
        return (np.asarray(x.shape[op.axis] - 1 - found),)

    return run
