"""Convolutions: exact sums over windows, channels-last inside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from intonnx.ir.ops.conv import Conv, Conv1d, Conv2d, Conv3d
from intonnx.ir.spatial import resolve_pads
from intonnx.ir.types import Array, TensorType

from .exact import (
    Product,
    accumulator_dtype,
    exact_dtype,
    exact_product,
    largest_magnitude,
)
from .kernel import Context, Kernel, kernels
from .windows import blocks, padded, windows_of


@kernels.register(Conv1d, Conv2d, Conv3d)
def conv(op: Conv, context: Context) -> Kernel:
    """Weights are packed at compile time when they and their zero point are constant."""
    x, w = context.operand(0), context.operand(1)
    if w.quant is not None:
        w_zero: Array | None = w.params.zero_point
    else:
        w_zero = context.constant(4) if context.has(4) else np.asarray(0)
    weights, bias = context.constant(1), context.constant(2)
    packed = None
    if weights is not None and w_zero is not None and (bias is not None or not context.has(2)):
        packed = _pack(op, weights, w_zero, x, bias)

    def run(operands: Sequence[Any]) -> tuple[Array, ...]:
        ready = packed
        if ready is None:
            zero = w_zero if w_zero is not None else operands[4]
            ready = _pack(op, operands[1], zero, x, operands[2] if len(operands) > 2 else None)
        x_zero = x.quant.scalar_zero_point if x.quant is not None else _runtime_zero(operands)
        return (ready.run(operands[0], x_zero),)

    return run


def _runtime_zero(operands: Sequence[Any]) -> int:
    zero = operands[3] if len(operands) > 3 else None
    return 0 if zero is None else int(np.asarray(zero).reshape(())[()])


def _pack(op: Conv, w: Array, w_zero: Array, x: TensorType, bias: Array | None) -> _Packed:
    zero = w_zero.astype(np.int64).reshape(-1, *[1] * (w.ndim - 1))
    centred = w.astype(np.int64) - zero
    if x.quant is not None:
        x_max = largest_magnitude(x.params.qmin, x.params.qmax, x.params.scalar_zero_point)
    else:
        x_max = x.dtype.high - x.dtype.low
    return _Packed(op, centred, x_max, bias)


class _Packed:
    """One convolution with its weights in the layout and float type that the bound allows."""

    def __init__(self, op: Conv, w: Array, x_max: int, bias: Array | None) -> None:
        self._op = op
        self._kernel = w.shape[2:]
        self._outputs = w.shape[0]
        self._bias = None if bias is None else bias.astype(np.int64)
        extra = 0 if self._bias is None else int(np.abs(self._bias).max(initial=0))
        groups, self._channels = op.groups, w.shape[1] * op.groups
        self._depthwise = groups > 1 and w.shape[1] == 1
        # [O, C/g, *k] -> [g, *k * C/g, O/g]: the reduction runs over the window, channels fastest.
        by_group = w.reshape(groups, w.shape[0] // groups, *w.shape[1:])
        matrix = np.moveaxis(by_group, 2, -1).reshape(groups, by_group.shape[1], -1).swapaxes(1, 2)
        bound = int(np.abs(matrix).sum(axis=1).max(initial=0)) * x_max
        self._dtype = accumulator_dtype(bound + extra)
        self._product: Product | None = None
        if self._depthwise:
            self._float = exact_dtype(bound)
            self._taps = matrix.transpose(1, 0, 2).astype(self._float)
        else:
            self._product, self._float = exact_product(matrix, x_max, extra)

    def run(self, x: Array, x_zero: int) -> Array:
        """int32 or int64 sums [N, O, *spatial] for codes [N, C, *spatial]."""
        op, channels_last = self._op, np.moveaxis(x, 1, -1)
        windows = windows_of(
            self._padded(channels_last, x_zero), self._kernel, op.strides, op.dilations
        )
        sums = self._depthwise_sums(windows) if self._depthwise else self._window_sums(windows)
        if self._bias is not None:
            sums += self._bias.astype(sums.dtype)
        return np.moveaxis(sums, -1, 1)

    def _padded(self, x: Array, x_zero: int) -> Array:
        """Centred codes in float, channels last, with zeros around."""
        op = self._op
        pads = resolve_pads(
            x.shape[1:-1], self._kernel, op.strides, op.dilations, op.pads, op.auto_pad
        )
        out = padded(x, pads, x_zero, self._float)
        if x_zero:
            out -= x_zero
        return out

    def _depthwise_sums(self, windows: Array) -> Array:
        """One multiply-add over channels-last rows for each cell of the kernel."""
        multiple = self._taps.shape[2]
        place = windows.shape[: self._op.spatial + 1]
        total = np.zeros((*place, self._channels, multiple), self._float)
        for tap, cell in enumerate(np.ndindex(*self._kernel)):
            total += windows[(..., *cell)][..., None] * self._taps[tap]
        sums: Array = total.reshape(*place, self._outputs).astype(self._dtype)
        return sums

    def _window_sums(self, windows: Array) -> Array:
        """im2col in blocks and one exact product for each."""
        n, groups = self._op.spatial, self._op.groups
        place = windows.shape[: n + 1]
        # [N, *out, C, *k] -> [N, *out, g, *k, C/g]
        by_group = np.moveaxis(_split_channels(windows, n + 1, groups), n + 2, -1)
        out = np.empty((*place, self._outputs), self._dtype)
        for images, rows in blocks(place, int(np.prod(by_group.shape[2:], dtype=np.int64))):
            block = by_group[images, rows]
            out[images, rows] = self._block(block).reshape(*block.shape[: n + 1], self._outputs)
        return out

    def _block(self, block: Array) -> Array:
        """Sums [positions, O] of gathered windows [..., g, *k, C/g]."""
        assert self._product is not None
        n, groups = self._op.spatial, self._op.groups
        reduction = int(np.prod(block.shape[n + 2 :], dtype=np.int64))
        positions = int(np.prod(block.shape[: n + 1], dtype=np.int64))
        columns = block.reshape(positions, groups, reduction)
        return self._product(columns.swapaxes(0, 1)).swapaxes(0, 1).reshape(positions, -1)


def _split_channels(windows: Array, axis: int, groups: int) -> Array:
    """A view with the channel axis split into groups and channels of a group."""
    channels, step = windows.shape[axis] // groups, windows.strides[axis]
    shape = (*windows.shape[:axis], groups, channels, *windows.shape[axis + 1 :])
    strides = (*windows.strides[:axis], step * channels, step, *windows.strides[axis + 1 :])
    return as_strided(windows, shape, strides, writeable=False)
