"""Slice: a view."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from intonnx.ir.ops.slice import Slice
from intonnx.ir.types import Array

from .kernel import Context, Kernel, kernels


@kernels.register(Slice)
def slice_of(op: Slice, context: Context) -> Kernel:
    """Python's slices clamp and count as ONNX does; nothing is copied."""

    def run(operands: Sequence[Any]) -> tuple[Array, ...]:
        x: Array = operands[0]
        cuts = [slice(None)] * x.ndim
        for axis, cut in zip(op.axes, op.cuts, strict=True):
            cuts[axis] = cut
        return (x[tuple(cuts)],)

    return run
