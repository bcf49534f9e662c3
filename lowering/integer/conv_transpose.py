"""Transposed convolutions: an exact product for each cell of the kernel, added in its place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from intonnx.ir.ops.conv_transpose import (
    ConvTranspose,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
)
from intonnx.ir.types import Array, QuantParams

from .exact import accumulator_dtype, exact_dtype, largest_magnitude
from .kernel import Context, Kernel, kernels

_BLOCK_ELEMENTS = 1 << 21
"""Cells of the kernel are multiplied together as long as the products stay below this many."""


@kernels.register(ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)
def conv_transpose(op: ConvTranspose, context: Context) -> Kernel:
    """Weights are packed at compile time when they are constant."""
    x, w = context.operand(0).params, context.operand(1).params
    weights, bias = context.constant(1), context.constant(2)
    packed = None
    if weights is not None and (bias is not None or not context.has(2)):
        packed = _Packed(op, weights, w, x, bias)

    def run(operands: Sequence[Any]) -> tuple[Array, ...]:
        ready = packed
        if ready is None:
            given = operands[2] if len(operands) > 2 else None
            ready = _Packed(op, operands[1], w, x, given)
        return (ready.run(operands[0]),)

    return run


class _Packed:
    """One transposed convolution with its weights in the float type that the bound allows."""

    def __init__(
        self, op: ConvTranspose, w: Array, w_params: QuantParams, x: QuantParams, bias: Array | None
    ) -> None:
        self._op = op
        self._x_zero = x.scalar_zero_point
        self._kernel = w.shape[2:]
        self._bias = None if bias is None else bias.astype(np.int64)
        extra = 0 if self._bias is None else int(np.abs(self._bias).max(initial=0))
        groups, self._outputs = op.groups, w.shape[1]
        centred = w.astype(np.int64) - w_params.along(w.ndim)[1]
        # [C, O/g, *k] -> [g, C/g, *k, O/g]
        by_group = np.moveaxis(centred.reshape(groups, -1, *w.shape[1:]), 2, -1)
        bound = _largest_sum(op, by_group)
        bound *= largest_magnitude(x.qmin, x.qmax, self._x_zero)
        self._float, self._dtype = exact_dtype(bound), accumulator_dtype(bound + extra)
        # [taps, g, C/g, O/g]
        matrices = by_group.reshape(*by_group.shape[:2], -1, self._outputs)
        self._taps = np.ascontiguousarray(np.moveaxis(matrices, 2, 0), self._float)

    def run(self, x: Array) -> Array:
        """int32 or int64 sums [N, O, *spatial'] for codes [N, C, *spatial]."""
        op, n = self._op, self._op.spatial
        centred = np.moveaxis(x, 1, -1).astype(self._float, order="C")
        centred -= self._x_zero
        sizes = centred.shape[1:-1]
        full = [self._full_size(axis, size) for axis, size in enumerate(sizes)]
        total = np.zeros((x.shape[0], *full, op.groups, self._outputs), self._float)
        columns = np.moveaxis(centred.reshape(*centred.shape[:-1], op.groups, -1), -2, 0)
        for cell, products in zip(np.ndindex(*self._kernel), self._products(columns), strict=True):
            total[(slice(None), *self._reached(cell, sizes))] += products
        ends = [size - after for size, after in zip(full, op.pads[n:], strict=True)]
        kept = tuple(slice(a, max(a, b)) for a, b in zip(op.pads[:n], ends, strict=True))
        sums = total[(slice(None), *kept)]
        whole = sums.reshape(*sums.shape[: n + 1], -1).astype(self._dtype, copy=False)
        if self._bias is not None:
            whole += self._bias.astype(whole.dtype)
        return np.moveaxis(whole, -1, 1)

    def _full_size(self, axis: int, size: int) -> int:
        """Cells of an axis of the result before the pads are cut off."""
        op = self._op
        span: int = (self._kernel[axis] - 1) * op.dilations[axis] + 1
        return max(0, (size - 1) * op.strides[axis] + span + op.output_padding[axis])

    def _reached(self, cell: Sequence[int], sizes: Sequence[int]) -> Iterator[slice]:
        """The cells of the result that one cell of the kernel adds to."""
        op = self._op
        for t, size, stride, dilation in zip(cell, sizes, op.strides, op.dilations, strict=True):
            yield slice(t * dilation, t * dilation + stride * size, stride) if size else slice(0)

    def _products(self, columns: Array) -> Iterator[Array]:
        """[N, *spatial, g, O/g] for each cell of the kernel, from `columns` [g, N, *spatial, C/g].

        Several cells share one matrix product as long as its result stays small.
        """
        groups, place = columns.shape[0], columns.shape[1:-1]
        rows = columns.reshape(groups, -1, columns.shape[-1])
        row_elements = max(1, rows.shape[1] * groups * self._outputs)
        together = max(1, _BLOCK_ELEMENTS // row_elements)
        for start in range(0, len(self._taps), together):
            taps = self._taps[start : start + together]
            matrix = np.moveaxis(taps, 0, 2).reshape(groups, columns.shape[-1], -1)
            # With one input channel a group this is a product of a column and a row.
            found = rows * matrix if columns.shape[-1] == 1 else np.matmul(rows, matrix)
            cells = found.reshape(groups, *place, len(taps), self._outputs)
            yield from np.moveaxis(np.moveaxis(cells, -2, 0), 1, -2)


def _largest_sum(op: ConvTranspose, w: Array) -> int:
    """The largest sum of |w| [g, C/g, *kernel, O/g] that one cell of the result receives.

    Only cells of the kernel whose offsets differ by a multiple of the stride meet in one.
    """
    magnitudes = np.abs(w).sum(axis=1)
    spatial = tuple(range(1, op.spatial + 1))
    largest = 0
    for chosen in op.meeting(w.shape[2:-1]):
        meeting = magnitudes[np.ix_(np.arange(w.shape[0]), *chosen, np.arange(w.shape[-1]))]
        largest = max(largest, int(meeting.sum(axis=spatial).max(initial=0)))
    return largest
