"""Pad on codes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from intonnx.ir.ops.pad import Pad
from intonnx.ir.types import Array

from .kernel import Context, Kernel, kernels


@kernels.register(Pad)
def pad(op: Pad, context: Context) -> Kernel:
    """Crop, then let numpy extend; constant cells hold the code `fill`."""
    crop = tuple(
        slice(max(0, -before), -max(0, -after) or None)
        for before, after in zip(op.before, op.after, strict=True)
    )
    widths = [
        (max(0, before), max(0, after)) for before, after in zip(op.before, op.after, strict=True)
    ]

    def run(operands: Sequence[Any]) -> tuple[Array, ...]:
        x: Array = operands[0][crop]
        if op.mode == "constant":
            return (np.pad(x, widths, constant_values=op.fill or 0),)
        return (np.pad(x, widths, mode=op.mode),)

    return run
