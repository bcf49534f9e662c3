"""Take every n-th element of a range along some axes."""

from __future__ import annotations

from typing import ClassVar

from intonnx.ir.op import Op, OperandTypes, ResultTypes, register_op
from intonnx.ir.shapes import normalized_axes, rearranged, with_parameters
from intonnx.ir.types import UNKNOWN_DIM, Dim, QuantParams


@register_op
class Slice(Op):
    """The elements from `starts[i]` on, before `ends[i]`, in steps of `steps[i]`, on `axes[i]`.

    Negative bounds count from the end; bounds beyond the axis stand for its ends; a negative step
    walks backwards. Operands: `x`, any type. Result: the type of `x` with the smaller shape;
    per-axis parameters are cut as their axis is. Source: ONNX Slice-13.

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

    @property
    def cuts(self) -> list[slice]:
        """One slice for each of `axes`. Python's slices clamp and count as ONNX does."""
        return [slice(*bounds) for bounds in zip(self.starts, self.ends, self.steps, strict=True)]

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
        for axis, cut in zip(axes, self.cuts, strict=True):
            shape[axis] = _size(x.shape[axis], cut)
            params = self._cut(params, axis, cut, x.shape[axis], shape[axis])
        return (with_parameters(x, shape, params),)

    def _cut(
        self, params: QuantParams | None, axis: int, cut: slice, before: Dim, after: Dim
    ) -> QuantParams | None:
        if params is None or params.axis is None:
            return params
        if params.block is None and params.axis != axis:
            return params
        if before == after and cut.step == 1:
            return params
        fits = params.block is None and isinstance(after, int) and after > 0
        self.require(fits, "C3", f"the axis {axis} is cut from {before} to {after}")
        return rearranged(params, lambda scales: scales[cut], axis)


def _size(size: Dim, cut: slice) -> Dim:
    if isinstance(size, int):
        return len(range(*cut.indices(size)))
    # All of a symbolic axis stays when the range starts at its first element and cannot end early.
    whole = cut.step == 1 and cut.start == 0 and cut.stop >= 2**31 - 1
    return size if whole else UNKNOWN_DIM
