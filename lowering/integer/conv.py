"""Convolutions: exact sums over windows, channels-last inside, in blocks that stay in the cache."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from intonnx.ir.ops.conv import Conv, Conv1d, Conv2d, Conv3d
from intonnx.ir.spatial import resolve_pads
from intonnx.ir.types import Array, TensorType

from ._depthwise import DepthwiseWeights, depthwise_sums
from .epilogue import Epilogue, epilogue
from .exact import accumulator_dtype
from .kernel import Context, Kernel, kernels
from .packed import CodeRange, PackedWeights
from .products import multiply_rows
from .windows import blocks, padded, windows_of


@kernels.register(Conv1d, Conv2d, Conv3d, channel_axis=1)
def conv(op: Conv, context: Context) -> Kernel:
    """Weights are packed at compile time when they and their zero point are constant."""
    x, w = context.operand(0), context.operand(1)
    if w.quant is not None:
        w_zero: Array | None = w.params.zero_point
    else:
        w_zero = context.constant(4) if context.has(4) else np.asarray(0)
    weights, bias = context.constant(1), context.constant(2)
    after = epilogue(context, 1)
    packed = None
    if weights is not None and w_zero is not None and (bias is not None or not context.has(2)):
        packed = _Packed(op, _centred(weights, w_zero), x, bias, after)

    def run(operands: Sequence[Any]) -> tuple[Array, ...]:
        ready = packed
        if ready is None:
            zero = w_zero if w_zero is not None else operands[4]
            given = operands[2] if len(operands) > 2 else None
            ready = _Packed(op, _centred(operands[1], zero), x, given, after)
        x_zero = x.quant.scalar_zero_point if x.quant is not None else _runtime_zero(operands)
        with np.errstate(over="ignore", under="ignore"):
            return (ready.run(operands[0], x_zero),)

    return run


def _runtime_zero(operands: Sequence[Any]) -> int:
    zero = operands[3] if len(operands) > 3 else None
    return 0 if zero is None else int(np.asarray(zero).reshape(())[()])


def _centred(w: Array, w_zero: Array) -> Array:
    return w.astype(np.int64) - w_zero.astype(np.int64).reshape(-1, *[1] * (w.ndim - 1))


def _codes(x: TensorType) -> CodeRange:
    if x.quant is not None:
        return CodeRange(x.params.qmin, x.params.qmax, x.params.scalar_zero_point)
    return CodeRange(x.dtype.low, x.dtype.high, None)


class _Packed:
    """One convolution with its weights in the layout and float type that the bound allows."""

    def __init__(
        self, op: Conv, w: Array, x: TensorType, bias: Array | None, after: Epilogue
    ) -> None:
        self._op, self._after = op, after
        self._kernel = w.shape[2:]
        self._outputs = w.shape[0]
        groups = op.groups
        # [O, C/g, *k] -> [g, *k * C/g, O/g]: the reduction runs over the window, channels fastest.
        by_group = w.reshape(groups, w.shape[0] // groups, *w.shape[1:])
        matrix = np.moveaxis(by_group, 2, -1).reshape(groups, by_group.shape[1], -1).swapaxes(1, 2)
        offsets = None if bias is None else bias.astype(np.int64).reshape(groups, -1)
        self._weights = PackedWeights(matrix, offsets, _codes(x), rounded=after.rounded)
        self._dtype = accumulator_dtype(self._weights.bound)
        self._depthwise = None
        if groups > 1 and w.shape[:2] == (groups, 1) and len(self._kernel) <= 2:
            self._depthwise = DepthwiseWeights(matrix[:, :, 0], offsets, op, w.shape[-1], _codes(x))

    def run(self, x: Array, x_zero: int) -> Array:
        """Results [N, O, *spatial] of the epilogue for codes [N, C, *spatial]."""
        op, channels_last = self._op, np.moveaxis(x, 1, -1)
        sizes = channels_last.shape[1:-1]
        pads = resolve_pads(sizes, self._kernel, op.strides, op.dilations, op.pads, op.auto_pad)
        if any(pads) or not channels_last.flags.c_contiguous:
            channels_last = padded(channels_last, pads, x_zero, x.dtype)
        windows = windows_of(channels_last, self._kernel, op.strides, op.dilations)
        place = windows.shape[: op.spatial + 1]
        out = np.empty((*place, self._outputs), self._after.dtype(self._dtype))
        if not out.size:
            return np.moveaxis(out, -1, 1)
        if self._depthwise is not None:
            depthwise_sums(self._depthwise, op, channels_last, x_zero, place[1:], self._store(out))
        elif math.prod(self._kernel) == op.groups == 1 and max(op.strides) == 1:
            rows, results = channels_last.reshape(-1, x.shape[1]), out.reshape(-1, self._outputs)
            multiply_rows(self._weights, rows, x_zero, results, self._after, self._dtype)
        else:
            self._windows(windows, x_zero, out)
        return np.moveaxis(out, -1, 1)

    def _store(self, out: Array) -> Any:
        """A function that writes the results of sums [..., O] at a place of `out`."""
        outputs, dtype = self._outputs, self._dtype

        def store(at: Any, sums: Array) -> None:
            # Rows of one image, or whole images: contiguous, so that this is a view.
            block = np.ascontiguousarray(sums.reshape(-1, outputs))
            self._after.apply(block, out[at].reshape(-1, outputs), dtype)

        return store

    def _windows(self, windows: Array, x_zero: int, out: Array) -> None:
        """im2col in blocks and one exact product for each."""
        n, groups = self._op.spatial, self._op.groups
        # [N, *out, C, *k] -> [N, *out, g, *k, C/g]
        by_group = np.moveaxis(_split_channels(windows, n + 1, groups), n + 2, -1)
        row = math.prod(by_group.shape[2 : n + 1])
        store, weights, scratch = self._store(out), self._weights, None
        for at in blocks(by_group.shape, row, weights.rows):
            block = by_group[at]
            positions = math.prod(block.shape[: n + 1])
            if scratch is None:
                scratch = weights.columns(positions), weights.sums(positions)
            columns, sums = (part[:, :positions] for part in scratch)
            unfolded = _unfolded(columns[..., :-1], block.shape[: n + 1], block.shape[n + 2 :])
            unfolded[...] = np.moveaxis(block, n + 1, 0)
            weights.multiply(columns, sums, x_zero)
            store(at, sums.swapaxes(0, 1))


def _unfolded(columns: Array, place: Sequence[int], window: Sequence[int]) -> Array:
    """A view [g, *place, *window] of columns [g, positions, K], whose axes are not contiguous."""
    group, position, cell = columns.strides
    strides = [position * math.prod(place[i + 1 :]) for i in range(len(place))]
    strides += [cell * math.prod(window[i + 1 :]) for i in range(len(window))]
    return as_strided(columns, (len(columns), *place, *window), (group, *strides))


def _split_channels(windows: Array, axis: int, groups: int) -> Array:
    """A view with the channel axis split into groups and channels of a group."""
    channels, step = windows.shape[axis] // groups, windows.strides[axis]
    shape = (*windows.shape[:axis], groups, channels, *windows.shape[axis + 1 :])
    strides = (*windows.strides[:axis], step * channels, step, *windows.strides[axis + 1 :])
    return as_strided(windows, shape, strides, writeable=False)
