"""Take every n-th element of a range along some axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from intonnx.ir.op import Op, OperandTypes, ResultTypes, register_op
from intonnx.ir.shapes import normalized_axes, rearranged, with_parameters
from intonnx.ir.types import UNKNOWN_DIM, Dim, QuantParams


def cut(start: int, end: int, step: int, size: int) -> slice:
    """What an axis of `size` elements is cut to: bounds as Python takes them.

    Python's own clamping differs: backwards it skips a start before the first element.
    """
    last = size - 1 if step < 0 else size
    start = min(max(start + size if start < 0 else start, 0), last)
    end = min(max(end + size if end < 0 else end, -1 if step < 0 else 0), size)
    kept = range(start, end, step)
    return slice(start, None if end < 0 else end, step) if kept else slice(0, 0, 1)


def cuts(
    shape: Sequence[int], starts: Any, ends: Any, axes: Any = None, steps: Any = None
) -> tuple[slice, ...]:
    """The same for the inputs of an ONNX Slice, arrays or lists: one `slice` for each axis.

    Raises IndexError for an axis that there is not, ValueError for lists of different lengths and
    for a step of 0.
    """
    places = [slice(None)] * len(shape)
    bounds = [np.ravel(values).tolist() for values in (starts, ends)]
    chosen = range(len(bounds[0])) if axes is None else np.ravel(axes).tolist()
    strides = [1] * len(bounds[0]) if steps is None else np.ravel(steps).tolist()
    for axis, start, end, step in zip(chosen, *bounds, strides, strict=True):
        places[axis] = cut(start, end, step, shape[axis])
    return tuple(places)


@register_op
class Slice(Op):
    """The elements from `starts[i]` on, before `ends[i]`, in steps of `steps[i]`, on `axes[i]`.

    Negative bounds count from the end; bounds beyond the axis stand for its ends (a start for its
    first or last element); a negative step walks backwards. Operands: `x`, any type. Result: the
    type of `x` with the smaller shape; per-axis parameters are cut as their axis is.
    Source: ONNX Slice-13.

    Constraints:
        C1: `starts`, `ends`, `axes` and `steps` have the same length; no step is 0.
        C2: `axes` are axes of `x`, each named once.
        C3: an axis with per-axis parameters is cut only where at least one element is known to
            stay; a blocked axis is not cut.
    """

    name: ClassVar[str] = "qnn.slice"
    signature: ClassVar[tuple[str, ...]] = ("x",)
    kind: ClassVar[str] = "mover"
    starts: tuple[int, ...]
    ends: tuple[int, ...]
    axes: tuple[int, ...]
    steps: tuple[int, ...]

    def cut(self, index: int, size: int) -> slice:
        """What `axes[index]`, which has `size` elements, is cut to; see the function `cut`."""
        return cut(self.starts[index], self.ends[index], self.steps[index], size)

    def infer(self, operands: OperandTypes) -> ResultTypes:
        x = self.operand(operands, 0)
        lengths = {len(self.starts), len(self.ends), len(self.axes), len(self.steps)}
        self.require(len(lengths) == 1, "C1", "the attributes have different lengths")
        self.require(0 not in self.steps, "C1", "a step is 0")
        if x.shape is None:
            self.require(x.quant is None or x.quant.per_tensor, "C3", "the rank is not known")
            return (x,)
        axes = normalized_axes(self, self.axes, len(x.shape), "C2")
        shape, params = list(x.shape), x.quant
        for index, axis in enumerate(axes):
            shape[axis] = self._size(index, x.shape[axis])
            params = self._cut_params(params, index, axis, x.shape[axis], shape[axis])
        return (with_parameters(x, shape, params),)

    def _size(self, index: int, size: Dim) -> Dim:
        if isinstance(size, int):
            return len(range(size)[self.cut(index, size)])
        return size if self._keeps_all(index, size) else UNKNOWN_DIM

    def _keeps_all(self, index: int, size: Dim) -> bool:
        start, end, step = self.starts[index], self.ends[index], self.steps[index]
        limit = size if isinstance(size, int) else 2**31 - 1
        return (start, step) == (0, 1) and end >= limit

    def _cut_params(
        self, params: QuantParams | None, index: int, axis: int, before: Dim, after: Dim
    ) -> QuantParams | None:
        if params is None or params.axis is None or self._keeps_all(index, before):
            return params
        if params.block is None and params.axis != axis:
            return params
        fits = params.block is None and isinstance(before, int) and after != 0
        self.require(fits, "C3", f"the axis {axis} is cut from {before} to {after} elements")
        cut = self.cut(index, int(before))
        return rearranged(params, lambda scales: scales[cut], axis)
