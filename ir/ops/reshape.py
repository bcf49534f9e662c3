"""Change the shape of a tensor and keep its elements in their order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from intonnx.ir.op import Op, OperandTypes, ResultTypes, optional_operand, register_op
from intonnx.ir.shapes import (
    computed_sizes,
    kept_axis,
    normalized_axes,
    product,
    quotient,
    rearranged,
    with_parameters,
)
from intonnx.ir.types import UNKNOWN_DIM, Dim, QuantParams, TensorType


@register_op
class Reshape(Op):
    """The elements of `x` in the shape `shape`.

    In the target -1 is what is left, and 0 copies the size of that axis of `x`, unless `allowzero`
    makes it the number 0. Operands: `x`, any type; `shape`, integers of rank 1, when the target is
    computed at run time. Result: the type of `x` with that shape; per-axis parameters follow their
    axis. Source: ONNX Reshape-21.

    Constraints:
        C1: the target is given once, as attribute or as operand.
        C2: at most one size is -1, none is smaller; a 0 that copies has an axis to copy; with
            `allowzero` there is not both a 0 and a -1.
        C3: the number of elements stays the same.
        C4: the operand `shape` holds integers and has rank 1.
        C5: an axis with per-axis parameters stays whole, in a shape known beforehand; blocked
            parameters do not reshape.
    """

    name: ClassVar[str] = "qnn.reshape"
    signature: ClassVar[tuple[str, ...]] = ("x", "shape?")
    kind: ClassVar[str] = "mover"
    shape: tuple[int, ...] | None = None
    allowzero: bool = False

    def infer(self, operands: OperandTypes) -> ResultTypes:
        x = self.operand(operands, 0)
        computed: TensorType | None = optional_operand(operands, 1)
        self.require((self.shape is None) != (computed is None), "C1", "not one target")
        if computed is None:
            shape: Sequence[Dim] | None = self._target(x)
        else:
            shape = computed_sizes(self, computed, "C4")
        return (with_parameters(x, shape, _reshaped(self, x, shape, "C5")),)

    def _target(self, x: TensorType) -> list[Dim]:
        assert self.shape is not None
        holes = [i for i, size in enumerate(self.shape) if size == -1]
        self.require(min(self.shape, default=0) >= -1, "C2", f"the target is {list(self.shape)}")
        self.require(len(holes) <= 1, "C2", f"the target {list(self.shape)} has two sizes of -1")
        both = self.allowzero and holes and 0 in self.shape
        self.require(not both, "C2", f"the target {list(self.shape)} leaves the size -1 open")
        copied = [i for i, size in enumerate(self.shape) if size == 0 and not self.allowzero]
        sizes: list[Dim] = [UNKNOWN_DIM if size == -1 else size for size in self.shape]
        for axis in copied:
            exists = x.shape is None or axis < len(x.shape)
            self.require(exists, "C2", f"there is no axis {axis} to copy")
            sizes[axis] = UNKNOWN_DIM if x.shape is None else x.shape[axis]
        if x.shape is not None:
            rest = [size for axis, size in enumerate(x.shape) if axis not in copied]
            given = [n for axis, n in enumerate(self.shape) if axis not in (*copied, *holes)]
            self._fit(rest, math.prod(given), sizes, holes, empty=0 in x.shape)
        return sizes

    def _fit(
        self, rest: Sequence[Dim], given: int, sizes: list[Dim], holes: list[int], *, empty: bool
    ) -> None:
        """Check the number of elements and fill in the size -1, copied axes left out."""
        known = not any(isinstance(size, str) for size in rest)
        total = math.prod(size for size in rest if isinstance(size, int))
        if not holes:
            same = not known or total == given or (empty and 0 in sizes)
            self.require(same, "C3", f"{total} elements for {given}")
            return
        if known:
            whole = given > 0 and total % given == 0
            self.require(whole, "C3", f"{total} elements are no multiple of {given}")
        sizes[holes[0]] = quotient(rest, given)


@register_op
class Flatten(Op):
    """`x` as a matrix: its axes before `axis` joined, and those from `axis` on.

    Operands: `x`, any type. Result: the type of `x` with rank 2; per-axis parameters follow their
    axis. Source: ONNX Flatten-21.

    Constraints:
        C1: `axis` lies between minus the rank and the rank.
        C2: an axis with per-axis parameters stays whole; blocked parameters do not reshape.
    """

    name: ClassVar[str] = "qnn.flatten"
    signature: ClassVar[tuple[str, ...]] = ("x",)
    kind: ClassVar[str] = "mover"
    axis: int = 1

    def infer(self, operands: OperandTypes) -> ResultTypes:
        x = self.operand(operands, 0)
        shape: tuple[Dim, Dim] = (UNKNOWN_DIM, UNKNOWN_DIM)
        if x.shape is not None:
            rank = len(x.shape)
            self.require(-rank <= self.axis <= rank, "C1", f"axis {self.axis} for rank {rank}")
            axis = self.axis + rank if self.axis < 0 else self.axis
            shape = (product(x.shape[:axis]), product(x.shape[axis:]))
        return (with_parameters(x, shape, _reshaped(self, x, shape, "C2")),)


@register_op
class Squeeze(Op):
    """`x` without some of its axes of size 1: those in `axes`, else all of them.

    Operands: `x`, any type. Result: the type of `x` with the shorter shape; per-axis and blocked
    parameters follow their axis. Source: ONNX Squeeze-21.

    Constraints:
        C1: `axes` are axes of `x`, each named once.
        C2: the axes that go have size 1.
        C3: per-axis parameters need to know which axes go; a blocked axis stays.
    """

    name: ClassVar[str] = "qnn.squeeze"
    signature: ClassVar[tuple[str, ...]] = ("x",)
    kind: ClassVar[str] = "mover"
    axes: tuple[int, ...] | None = None

    def infer(self, operands: OperandTypes) -> ResultTypes:
        x = self.operand(operands, 0)
        gone = self._gone(x.shape)
        if x.shape is None or gone is None:
            self.require(x.quant is None or x.quant.per_tensor, "C3", "the axes are not known")
            return (x.with_shape(None),)
        ones = all(isinstance(x.shape[axis], str) or x.shape[axis] == 1 for axis in gone)
        self.require(ones, "C2", f"the axes {list(gone)} of {list(x.shape)}")
        kept = [axis for axis in range(len(x.shape)) if axis not in gone]
        shape = [x.shape[axis] for axis in kept]
        return (with_parameters(x, shape, self._params(x.quant, kept, gone)),)

    def _gone(self, shape: Sequence[Dim] | None) -> tuple[int, ...] | None:
        if shape is None:
            return None
        if self.axes is not None:
            return normalized_axes(self, self.axes, len(shape), "C1")
        if any(isinstance(size, str) for size in shape):
            return None
        return tuple(axis for axis, size in enumerate(shape) if size == 1)

    def _params(
        self, params: QuantParams | None, kept: Sequence[int], gone: tuple[int, ...]
    ) -> QuantParams | None:
        if params is None or params.axis is None:
            return params
        if params.block is not None:
            self.require(params.axis in kept, "C3", f"the axis {params.axis} is blocked")
            axis = kept.index(params.axis)
            return rearranged(params, lambda scales: scales.squeeze(gone), axis)
        if params.axis in kept:
            return params.with_axis(kept.index(params.axis))
        return rearranged(params, lambda scales: scales.reshape(()), None)


@register_op
class Unsqueeze(Op):
    """`x` with new axes of size 1 at the places `axes` of the result.

    Operands: `x`, any type. Result: the type of `x` with the longer shape; per-axis and blocked
    parameters follow their axis. Source: ONNX Unsqueeze-21.

    Constraints:
        C1: `axes` are axes of the result, each named once.
        C2: per-axis parameters need a known rank.
    """

    name: ClassVar[str] = "qnn.unsqueeze"
    signature: ClassVar[tuple[str, ...]] = ("x",)
    kind: ClassVar[str] = "mover"
    axes: tuple[int, ...]

    def infer(self, operands: OperandTypes) -> ResultTypes:
        x = self.operand(operands, 0)
        if x.shape is None:
            self.require(x.quant is None or x.quant.per_tensor, "C2", "the rank is not known")
            return (x,)
        rank = len(x.shape) + len(self.axes)
        new = normalized_axes(self, self.axes, rank, "C1")
        kept = [axis for axis in range(rank) if axis not in new]
        shape: list[Dim] = [1] * rank
        for axis, size in zip(kept, x.shape, strict=True):
            shape[axis] = size
        params = x.quant
        if params is not None and params.axis is not None:
            axis = kept[params.axis]
            blocked = params.block is not None
            params = params.with_axis(axis)
            if blocked:
                params = rearranged(params, lambda scales: np.expand_dims(scales, new), axis)
        return (with_parameters(x, shape, params),)


def _reshaped(
    op: Op, x: TensorType, shape: Sequence[Dim] | None, constraint: str
) -> QuantParams | None:
    """The parameters of `x` in a shape that has the same elements in the same order."""
    params = x.quant
    if params is None or params.axis is None:
        return params
    op.require(params.block is None, constraint, "x has blocked parameters")
    axis = None
    if x.shape is not None and shape is not None:
        axis = kept_axis(x.shape, shape, params.axis)
    op.require(axis is not None, constraint, f"the axis {params.axis} does not stay whole")
    return params.with_axis(axis)
