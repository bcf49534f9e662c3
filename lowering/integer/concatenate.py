"""Join codes; operands with other parameters go through a table first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from intonnx.ir.ops.concatenate import Concatenate
from intonnx.ir.types import Array

from .kernel import Context, Kernel, kernels
from .quantize import requantize_function


@kernels.register(Concatenate)
def concatenate(op: Concatenate, context: Context) -> Kernel:
    """One table an operand at compile time; constants are requantized then, too."""
    steps: list[Callable[[Array], Array] | None] = []
    ready: dict[int, Array] = {}
    for index, kind in enumerate(context.operands):
        assert kind is not None
        if op.out is None or kind.params == op.out:
            steps.append(None)
            continue
        step = requantize_function(kind.params, op.out, kind.rank or 0, context)
        steps.append(step)
        if (array := context.constant(index)) is not None:
            ready[index] = step(array)

    def run(operands: Sequence[Any]) -> tuple[Array, ...]:
        parts = [
            ready[i] if i in ready else operands[i] if step is None else step(operands[i])
            for i, step in enumerate(steps)
        ]
        return (np.concatenate(parts, op.axis),)

    return run
