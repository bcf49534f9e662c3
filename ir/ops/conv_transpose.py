"""Transposed convolutions over one, two and three spatial axes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import ClassVar

import numpy as np

from intonnx.ir.bounds import Bounds, centred_limits, columns, weighted_sums
from intonnx.ir.op import Op, OperandTypes, ResultTypes, optional_operand, register_op
from intonnx.ir.ops.conv import check_channel_bias, product_scale
from intonnx.ir.types import UNKNOWN_DIM, Array, Dim, TensorType, accumulator, quantized


def transposed_scale(op: ConvTranspose, x: TensorType, w: TensorType) -> Array:
    """float32 scale of the accumulator, rank 1 with an entry a channel when `w` is per axis.

    Weights [C, O / groups, *kernel] per axis 1 have the same scales in every group; per axis 0 they
    have one a group, which only groups of one input channel allow (C3).
    """
    axis = w.params.axis
    if axis is None:
        return product_scale(op, x, w, 0)
    op.require(axis in (0, 1), "C3", f"weights are per axis {axis}")
    scale = product_scale(op, x, w, axis)
    if axis == 1:
        return np.tile(scale, op.groups)
    alone = w.shape is not None and w.shape[0] == op.groups and isinstance(w.shape[1], int)
    op.require(alone, "C3", "weights are per axis 0, over which the products are added")
    assert w.shape is not None
    return np.repeat(scale, int(w.shape[1]))


class ConvTranspose(Op):
    """The exact int32 sum of what each cell of `x` adds to a window of the result, plus a bias.

    Operands: `x` [N, C, *spatial] and `w` [C, O / groups, *kernel], quantized; `bias` [O] i32,
    optional, with the scale of the result. Result: i32 [N, O, *spatial'] with the scale
    x.scale * w.scale, per axis 1 when `w` is per axis. Cell i of an axis adds
    (x - x_zero_point) * (w[t] - w_zero_point) to cell i * stride + t * dilation - pad; an axis has
    stride * (size - 1) + (kernel - 1) * dilation + 1 + output_padding - both pads cells.
    Source: ONNX ConvTranspose-22.

    Attributes:
        strides, dilations: one a spatial axis.
        pads: cells cut off before each spatial axis, then after each.
        output_padding: cells added at the end of each spatial axis, before the pads are cut off.
        groups: number of groups.

    Constraints:
        C1: `x` and `w` have the operator's rank; strides, dilations, pads and output_padding its
            length; strides and dilations are positive, the others not negative.
        C2: `x` has the channels of `w`, a multiple of the groups; no result size is negative.
        C3: `x` is quantized per tensor, `w` per tensor or per axis 1; per axis 0 when every group
            has one input channel.
        C4: the product of the scales is a finite float32 above zero.
        C5: `bias` is i32 of shape [O].
    """

    spatial: ClassVar[int]
    signature: ClassVar[tuple[str, ...]] = ("x", "w", "bias?")
    strides: tuple[int, ...]
    pads: tuple[int, ...]
    dilations: tuple[int, ...]
    output_padding: tuple[int, ...]
    groups: int = 1

    def infer(self, operands: OperandTypes) -> ResultTypes:
        x, w = self.operand(operands, 0), self.operand(operands, 1)
        shape = self._result_shape(operands)
        check_channel_bias(self, optional_operand(operands, 2), shape[1])
        self.require(x.quant is not None and w.quant is not None, "C3", "x or w is not quantized")
        self.require(x.params.per_tensor, "C3", "x is quantized per axis")
        self.require(w.params.block is None, "C3", "w has blocked scales")
        scale = transposed_scale(self, x, w)
        axis = 1 if scale.ndim else None
        return (quantized(accumulator(scale, axis, expressed=x.params.expressed), shape),)

    def accumulator_bounds(
        self, operands: OperandTypes, constants: Sequence[Array | None]
    ) -> Bounds | None:
        x, w = self.operand(operands, 0), self.operand(operands, 1)
        codes = constants[1]
        if codes is None:
            return None
        centred = codes.astype(np.int64) - w.params.along(codes.ndim)[1]
        # [C, O / groups, *kernel] -> [C / groups, O, *kernel]
        grouped = centred.reshape(self.groups, -1, *codes.shape[1:]).swapaxes(0, 1)
        by_channel = grouped.reshape(grouped.shape[0], -1, *codes.shape[2:])
        counts = by_channel.shape[:2]
        axes = [0, *range(2, codes.ndim)]
        rows = [
            columns(by_channel[np.ix_(*map(np.arange, counts), *cells)], axes)
            for cells in self.meeting(codes.shape[2:])
        ]
        found = [weighted_sums(centred_limits(x), cells) for cells in rows]
        low, high = (np.stack([getattr(f, name) for f in found]) for name in ("low", "high"))
        bounds = Bounds(low, high, np.zeros(low.shape, bool)).merged(counts[1])
        return bounds.with_bias(optional_operand(operands, 2), optional_operand(constants, 2))

    def meeting(self, kernel: Sequence[int]) -> Iterator[tuple[Array, ...]]:
        """The cells of a kernel of this size that can add to one cell of the result, axis by axis.

        Only those whose offsets differ by a multiple of the stride do.
        """
        offsets = [
            np.arange(size) * dilation % stride
            for size, stride, dilation in zip(kernel, self.strides, self.dilations, strict=True)
        ]
        phases = [[np.flatnonzero(found == n) for n in np.unique(found)] for found in offsets]
        yield from product(*phases)

    def _result_shape(self, operands: OperandTypes) -> tuple[Dim, ...]:
        n = self.spatial
        x, w = self.shape_of(operands, 0, "C1"), self.shape_of(operands, 1, "C1")
        self.require(len(x) == n + 2 and len(w) == n + 2, "C1", f"ranks are {len(x)}, {len(w)}")
        self._check_attributes()
        kernel = [size for size in w[2:] if isinstance(size, int)]
        self.require(len(kernel) == n and min(kernel) > 0, "C1", f"the kernel is {list(w[2:])}")
        if isinstance(w[0], int):
            fits = w[0] % self.groups == 0 and (isinstance(x[1], str) or x[1] == w[0])
            self.require(fits, "C2", f"{x[1]} channels, weights of {w[0]}, {self.groups} groups")
        outputs = w[1] * self.groups if isinstance(w[1], int) else UNKNOWN_DIM
        return (x[0], outputs, *(self._size(x[2 + i], kernel[i], i) for i in range(n)))

    def _check_attributes(self) -> None:
        n = self.spatial
        lengths = [len(v) for v in (self.strides, self.dilations, self.output_padding)]
        fits = lengths == [n, n, n] and len(self.pads) == 2 * n
        self.require(fits, "C1", f"strides {self.strides}, pads {self.pads}")
        positive = min(*self.strides, *self.dilations, self.groups) > 0
        positive = positive and min(*self.pads, *self.output_padding) >= 0
        self.require(positive, "C1", f"strides {self.strides}, pads {self.pads}")

    def _size(self, size: Dim, kernel: int, axis: int) -> Dim:
        more = self.growth(kernel, axis)
        if not isinstance(size, int):
            return size if self.strides[axis] == 1 and more == 0 else UNKNOWN_DIM
        result = size * self.strides[axis] + more
        self.require(result >= 0, "C2", f"axis {axis + 2} has {result} cells")
        return result

    def growth(self, kernel: int, axis: int) -> int:
        """The size of a spatial axis of the result, less `stride` times that of `x`."""
        pads = self.pads[axis] + self.pads[self.spatial + axis]
        span = (kernel - 1) * self.dilations[axis] + 1
        return span + self.output_padding[axis] - self.strides[axis] - pads


@register_op
class ConvTranspose1d(ConvTranspose):
    """See `ConvTranspose`, over one spatial axis."""

    name: ClassVar[str] = "qnn.conv1d_transpose"
    spatial: ClassVar[int] = 1


@register_op
class ConvTranspose2d(ConvTranspose):
    """See `ConvTranspose`, over two spatial axes."""

    name: ClassVar[str] = "qnn.conv2d_transpose"
    spatial: ClassVar[int] = 2


@register_op
class ConvTranspose3d(ConvTranspose):
    """See `ConvTranspose`, over three spatial axes."""

    name: ClassVar[str] = "qnn.conv3d_transpose"
    spatial: ClassVar[int] = 3
