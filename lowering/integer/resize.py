"""Resize: gathers along each axis, and weighted sums where cells are interpolated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np

from intonnx.ir.ops.resize import Resampling, Resize, ResizeNearest
from intonnx.ir.types import Array, QuantParams
from intonnx.lowering.requantize import round_to_codes
from intonnx.lowering.resampling import (
    Taps,
    cheapest_first,
    fill_outside,
    nearest_cells,
    taps,
    weighted,
)

from ._fixed_resize import FixedResize
from .kernel import Context, Kernel, kernels

Plan = TypeVar("Plan")


@kernels.register(ResizeNearest)
def resize_nearest(op: ResizeNearest, context: Context) -> Kernel:
    """One gather an axis; the cells are known at compile time where the sizes are."""
    plan = _planned(op, context, lambda sizes: [nearest_cells(op, e) for e in op.extents(sizes)])

    def run(operands: Sequence[Any]) -> tuple[Array, ...]:
        x: Array = operands[0]
        for axis, cells in zip(op.axes, plan(x), strict=True):
            if not np.array_equal(cells, np.arange(x.shape[axis])):
                x = x.take(cells, axis)
        return (x,)

    return run


@kernels.register(Resize)
def resize(op: Resize, context: Context) -> Kernel:
    """Weights in float64, one rounding; in `fixed` integers alone."""
    x = context.operand(0).params
    if context.numerics == "fixed":
        return _fixed(op, context)
    plan = _planned(
        op, context, lambda sizes: [taps(op, e, i) for i, e in enumerate(op.extents(sizes))]
    )

    def run(operands: Sequence[Any]) -> tuple[Array, ...]:
        return (_interpolated(op, operands[0], x, plan(operands[0])),)

    return run


def _fixed(op: Resize, context: Context) -> Kernel:
    x = context.operand(0)

    @lru_cache(maxsize=16)
    def made(sizes: tuple[int, ...]) -> FixedResize:
        return FixedResize(op, x.params, x.rank or 0, sizes)

    plan = _planned(op, context, lambda sizes: made(tuple(sizes)))
    return lambda operands: (plan(operands[0])(operands[0]),)


def _planned(
    op: Resampling, context: Context, make: Callable[[Sequence[int]], Plan]
) -> Callable[[Array], Plan]:
    """What `make` makes of the sizes of the resized axes: once, where they are known."""
    shape = context.operand(0).shape or ()
    sizes = [size for size in (shape[axis] for axis in op.axes) if isinstance(size, int)]
    if len(sizes) == len(op.axes):
        known = make(sizes)
        return lambda x: known
    return lambda x: make([x.shape[axis] for axis in op.axes])


def _interpolated(op: Resize, codes: Array, x: QuantParams, plan: Sequence[Taps]) -> Array:
    scale, zero = x.along(codes.ndim)
    value = codes.astype(np.float64, order="K")
    value -= zero
    factor = scale.astype(np.float64) / float(op.out.scalar_scale)
    if x.axis is not None:
        value *= factor
    growth = [
        step.cells.shape[1] / max(1, codes.shape[axis])
        for axis, step in zip(op.axes, plan, strict=True)
    ]
    for index in cheapest_first(growth):
        value = weighted(value, op.axes[index], plan[index], 1, lambda total: total)
    if x.axis is None:
        value *= factor
    result = round_to_codes(value, op.out)
    fill_outside(op, result, [step.outside for step in plan])
    return result
