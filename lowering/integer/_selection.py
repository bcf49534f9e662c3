"""Operands of one operator that all get the parameters of its result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from intonnx.ir.types import Array, QuantParams

from .kernel import Context
from .quantize import requantize_function

Prepare = Callable[[Sequence[Any]], list[Array]]


def prepared(out: QuantParams | None, indices: Sequence[int], context: Context) -> Prepare:
    """A function from all operands to those at `indices`, with the parameters `out`.

    One table an operand at compile time, none for one that has these parameters already; constants
    are requantized then, too. For plain integers `out` is None.
    """
    steps: list[Callable[[Array], Array] | None] = []
    ready: dict[int, Array] = {}
    for index in indices:
        kind, step = context.operand(index), None
        if out is not None and kind.params != out:
            step = requantize_function(kind.params, out, kind.rank or 0, context)
            if (array := context.constant(index)) is not None:
                ready[index] = step(array)
        steps.append(step)

    def prepare(operands: Sequence[Any]) -> list[Array]:
        return [
            ready[i] if i in ready else operands[i] if step is None else step(operands[i])
            for i, step in zip(indices, steps, strict=True)
        ]

    return prepare
