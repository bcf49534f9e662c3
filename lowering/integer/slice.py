"""Slice: a view."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from intonnx.ir.ops.slice import Slice
from intonnx.ir.types import Array

from .kernel import Context, Kernel, kernels


@kernels.register(Slice)
def slice_of(op: Slice, context: Context) -> Kernel:
    """The bounds depend on the sizes; nothing is copied."""

    def run(operands: Sequence[Any]) -> tuple[Array, ...]:
        x: Array = operands[0]
        cuts = [slice(None)] * x.ndim
        for index, axis in enumerate(op.axes):
            cuts[axis] = op.cut(index, x.shape[axis])
        return (x[tuple(cuts)],)

    return run
