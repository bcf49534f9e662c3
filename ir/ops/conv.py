"""Convolutions over one, two and three spatial axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from intonnx.ir.bounds import Bounds, product_bounds
from intonnx.ir.op import (
    Op,
    OperandTypes,
    ResultTypes,
    element_count,
    optional_operand,
    register_op,
)
from intonnx.ir.spatial import AutoPad, window_count
from intonnx.ir.types import (
    Array,
    Dim,
    DType,
    TensorType,
    accumulator,
    plain,
    quantized,
)


def product_scale(op: Op, x: TensorType, w: TensorType, w_axis: int) -> Array:
    """float32 scale of an accumulator: x.scale * w.scale, rank 1 when `w` is per axis `w_axis`."""
    with np.errstate(over="ignore", under="ignore"):
        scale = x.params.scale * w.params.scale
    op.require(
        bool(np.all(np.isfinite(scale)) and np.all(scale > 0)),
        "C4",
        "the product of the scales leaves the range of float32",
    )
    op.require(w.params.axis in (None, w_axis), "C3", f"weights are per axis {w.params.axis}")
    return np.asarray(scale)


def check_channel_bias(op: Op, bias: TensorType | None, channels: Dim) -> None:
    """Check C5, which every convolution states: a bias is i32, one for each output channel."""
    if bias is None:
        return
    op.require(bias.dtype is DType.I32, "C5", f"the bias is {bias.dtype}, not i32")
    fits = bias.shape is None or (
        len(bias.shape) == 1 and (bias.shape[0] == channels or isinstance(channels, str))
    )
    op.require(fits, "C5", f"the bias has shape {bias.shape} for {channels} channels")


class Conv(Op):
    """The exact int32 sum of (x - x_zero_point) * (w - w_zero_point) over a window, plus a bias.

    Operands: `x` [N, C, *spatial]; `w` [O, C / groups, *kernel]; `bias` [O] i32, optional;
    `x_zero_point` [] and `w_zero_point` [] or [O], optional, integers.
    Two forms: `x` and `w` quantized, then the zero points are those of the types, the bias has the
    accumulator's parameters or none, and the result is i32 with the scale x.scale * w.scale (per
    axis 1 when `w` is per axis 0); or `x` and `w` plain integers with zero points as operands (0
    when absent), and the result is plain i32.
    Padding adds cells that hold the zero point. Source: ONNX QLinearConv-10, ConvInteger-10.

    Attributes:
        strides, dilations: one a spatial axis.
        pads: cells before each spatial axis, then after each; zeros unless auto_pad is NOTSET.
        auto_pad: as in ONNX Conv-22, kept for sizes that are known at run time only.
        groups: number of groups.

    Constraints:
        C1: `x` and `w` have the operator's rank; strides, dilations and pads its length, and are
            positive (pads: not negative).
        C2: `x` has groups times the channels of `w`, and O is a multiple of the groups.
        C3: `x` is quantized per tensor, `w` per tensor or per axis 0; both or neither.
        C4: the product of the scales is a finite float32 above zero.
        C5: `bias` is i32 of shape [O].
        C6: zero points are operands only in the plain form.
    """

    spatial: ClassVar[int]
    signature: ClassVar[tuple[str, ...]] = (
        "x",
        "w",
        "bias?",
        "x_zero_point?",
        "w_zero_point?",
    )
    strides: tuple[int, ...]
    pads: tuple[int, ...]
    dilations: tuple[int, ...]
    groups: int = 1
    auto_pad: AutoPad = "NOTSET"

    def infer(self, operands: OperandTypes) -> ResultTypes:
        x, w = self.operand(operands, 0), self.operand(operands, 1)
        shape = self._result_shape(operands)
        check_channel_bias(self, optional_operand(operands, 2), shape[1])
        self.require((x.quant is None) == (w.quant is None), "C3", "only one operand is quantized")
        if x.quant is None:
            self.require(x.is_integer and w.is_integer, "C3", f"operands are {x.dtype}, {w.dtype}")
            return (plain(DType.I32, shape),)
        self.require(x.quant.per_tensor, "C3", "x is quantized per axis")
        absent = all(kind is None for kind in operands[3:])
        self.require(absent, "C6", "zero points are given twice")
        scale = product_scale(self, x, w, 0)
        axis = 1 if scale.ndim else None
        return (quantized(accumulator(scale, axis, expressed=x.quant.expressed), shape),)

    def multiply_accumulates(self, operands: OperandTypes, results: ResultTypes) -> int:
        return element_count(results[0].shape) * element_count(self.shape_of(operands, 1)[1:])

    def accumulator_bounds(
        self, operands: OperandTypes, constants: Sequence[Array | None]
    ) -> Bounds | None:
        return product_bounds(operands, constants, range(1, self.spatial + 2), 0)

    def _result_shape(self, operands: OperandTypes) -> tuple[int | str, ...]:
        n = self.spatial
        x, w = self.shape_of(operands, 0, "C1"), self.shape_of(operands, 1, "C1")
        self.require(len(x) == n + 2 and len(w) == n + 2, "C1", f"ranks are {len(x)}, {len(w)}")
        lengths = len(self.strides) == n and len(self.dilations) == n and len(self.pads) == 2 * n
        self.require(lengths, "C1", f"strides {self.strides}, pads {self.pads}")
        positive = min(*self.strides, *self.dilations, self.groups) > 0 and min(self.pads) >= 0
        self.require(positive, "C1", f"strides {self.strides}, pads {self.pads}")
        kernel = [size for size in w[2:] if isinstance(size, int)]
        self.require(len(kernel) == n, "C1", "the kernel's size is not known")
        if isinstance(x[1], int) and isinstance(w[1], int):
            self.require(
                x[1] == w[1] * self.groups, "C2", f"{x[1]} channels, {self.groups} groups of {w[1]}"
            )
        if isinstance(w[0], int):
            self.require(w[0] % self.groups == 0, "C2", f"{w[0]} outputs, {self.groups} groups")
        sizes = [
            window_count(x[2 + i], kernel[i], self.strides[i], self.dilations[i],
                         (self.pads[i], self.pads[n + i]), self.auto_pad)
            for i in range(n)
        ]  # fmt: skip
        fits = all(isinstance(size, str) or size >= 0 for size in sizes)
        self.require(fits, "C1", "the kernel is too large")
        return (x[0], w[0], *sizes)


@register_op
class Conv1d(Conv):
    """See `Conv`, over one spatial axis."""

    name: ClassVar[str] = "qnn.conv1d"
    spatial: ClassVar[int] = 1


@register_op
class Conv2d(Conv):
    """See `Conv`, over two spatial axes."""

    name: ClassVar[str] = "qnn.conv2d"
    spatial: ClassVar[int] = 2


@register_op
class Conv3d(Conv):
    """See `Conv`, over three spatial axes."""

    name: ClassVar[str] = "qnn.conv3d"
    spatial: ClassVar[int] = 3
