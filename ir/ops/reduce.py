"""Reductions along axes: mean, sum, maximum and minimum."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

from intonnx.ir.bounds import Bounds, sums_of
from intonnx.ir.op import Op, OperandTypes, ResultTypes, register_op
from intonnx.ir.shapes import normalized_axes, with_parameters
from intonnx.ir.types import (
    Array,
    Dim,
    QuantParams,
    TensorType,
    accumulator,
    quantized,
    static_shape,
)


class Reduction(Op):
    """One value in place of all along some axes.

    Attributes:
        axes: the axes that are reduced; a negative one counts from the back.
        keepdims: whether they stay as axes of size 1.
    """

    signature: ClassVar[tuple[str, ...]] = ("x",)
    axes: tuple[int, ...]
    keepdims: bool = True

    def reduced(self, shape: tuple[Dim, ...]) -> tuple[Dim, ...]:
        """The shape of the result. Raises TypeFailure C2 for an axis that is not there."""
        axes = normalized_axes(self, self.axes, len(shape), "C2")
        self.require(bool(axes) or not shape, "C2", "no axis is named")
        kept = [1 if axis in axes else size for axis, size in enumerate(shape)]
        if not self.keepdims:
            kept = [size for axis, size in enumerate(shape) if axis not in axes]
        return tuple(kept)

    def counted(self, shape: tuple[Dim, ...]) -> tuple[Dim, ...]:
        """The sizes of the axes that are reduced."""
        return tuple(shape[axis] for axis in normalized_axes(self, self.axes, len(shape), "C2"))

    def accumulator_bounds(
        self, operands: OperandTypes, constants: Sequence[Array | None]
    ) -> Bounds | None:
        sizes = static_shape(self.counted(self.shape_of(operands, 0, "C2")))
        return None if sizes is None else sums_of(self.operand(operands, 0), math.prod(sizes))

    def check_activation(self, operands: OperandTypes) -> TensorType:
        """The type of `x`. Raises TypeFailure C1 unless it has 16-bit codes or narrower ones."""
        x = self.operand(operands, 0)
        fits = x.quant is not None and x.quant.per_tensor and x.dtype.bits <= 16
        self.require(fits, "C1", f"the operand is {x.dtype}, or not quantized per tensor")
        return x


@register_op
class Mean(Reduction):
    """The mean along `axes`: an exact sum of whole numbers and one multiplier.

    Operands: `x`, codes. Result: codes with the parameters `out`, `x` without the axes or with
    size 1 there. Source: ONNX ReduceMean-18; com.microsoft QLinearReduceMean-1.

    Constraints:
        C1: `x` is quantized per tensor, in at most 16 bits.
        C2: `axes` are axes of `x`, at least one unless it is a scalar, each named once; the rank
            of `x` is known.
        C3: `out` is per tensor.
    """

    name: ClassVar[str] = "qnn.mean"
    out: QuantParams

    def infer(self, operands: OperandTypes) -> ResultTypes:
        self.check_activation(operands)
        shape = self.reduced(self.shape_of(operands, 0, "C2"))
        self.require(self.out.per_tensor, "C3", "the result's parameters are not per tensor")
        return (quantized(self.out, shape),)


@register_op
class Sum(Reduction):
    """The exact sum of (x - zero_point) along `axes`.

    Operands: `x`, codes. Result: an i32 accumulator with the scale of `x`; sums that need more than
    32 bits are computed wider. Source: ONNX ReduceSum-13.

    Constraints:
        C1: `x` is quantized per tensor, in at most 16 bits.
        C2: `axes` are axes of `x`, at least one unless it is a scalar, each named once; the rank
            of `x` is known.
    """

    name: ClassVar[str] = "qnn.sum"

    def infer(self, operands: OperandTypes) -> ResultTypes:
        x = self.check_activation(operands)
        shape = self.reduced(self.shape_of(operands, 0, "C2"))
        params = accumulator(x.params.scale, None, expressed=x.params.expressed)
        return (quantized(params, shape),)


class Extremum(Reduction):
    """The largest or smallest code along `axes`, which stands for that of the values.

    Operands: `x`, quantized or plain integers. Result: the type of `x`, without the axes or with
    size 1 there; over no elements at all, the end of the storage type's range.
    Source: ONNX ReduceMax-20, ReduceMin-20.

    Constraints:
        C1: `x` holds integers; it is not blocked, nor per axis along an axis that is reduced.
        C2: `axes` are axes of `x`, at least one unless it is a scalar, each named once; the rank
            of `x` is known.
    """

    def accumulator_bounds(
        self, operands: OperandTypes, constants: Sequence[Array | None]
    ) -> Bounds | None:
        """None: nothing is added up."""
        return None

    def infer(self, operands: OperandTypes) -> ResultTypes:
        x = self.operand(operands, 0)
        self.require(x.is_integer, "C1", f"the operand is {x.dtype}")
        shape = self.shape_of(operands, 0, "C2")
        axes = normalized_axes(self, self.axes, len(shape), "C2")
        params = x.quant
        if params is not None and params.axis is not None:
            self.require(params.block is None, "C1", "the operand is blocked")
            self.require(params.axis not in axes, "C1", f"the scales along {params.axis} differ")
            before = 0 if self.keepdims else sum(axis < params.axis for axis in axes)
            params = params.with_axis(params.axis - before)
        return (with_parameters(x, self.reduced(shape), params),)


@register_op
class ReduceMax(Extremum):
    """See `Extremum`: the largest."""

    name: ClassVar[str] = "qnn.reduce_max"


@register_op
class ReduceMin(Extremum):
    """See `Extremum`: the smallest."""

    name: ClassVar[str] = "qnn.reduce_min"
