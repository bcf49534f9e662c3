"""Sampling: one gather of channels-last rows for each cell of the window."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from intonnx.ir.ops.grid_sample import GridSample
from intonnx.ir.quantization import dequantize_array
from intonnx.ir.types import Array, QuantParams
from intonnx.lowering.requantize import round_to_codes

from ._fixed_grid_sample import FixedSampler, places_of
from ._sampling import nearest, position, window
from .kernel import Context, Kernel, kernels
from .quantize import requantize_function


@kernels.register(GridSample)
def grid_sample(op: GridSample, context: Context) -> Kernel:
    """The places in float32, the means in float64; in `fixed` integers alone."""
    x, grid = context.operand(0).params, context.operand(1).quant
    to_result = requantize_function(x, op.out, 0, context)
    if context.numerics == "fixed":
        places = places_of(op, context.operand(1), context.constant(1))
        sample = FixedSampler(op, x, places, to_result)
        return lambda operands: (np.moveaxis(sample(operands[0], operands[1]), -1, 1),)

    def run(operands: Sequence[Any]) -> tuple[Array, ...]:
        codes: Array = operands[0]
        places: Array = operands[1] if grid is None else dequantize_array(operands[1], grid)
        sampler = _Sampler(op, codes, places)
        if op.mode == "nearest":
            result = to_result(sampler.nearest(x.scalar_zero_point))
        else:
            result = _quantized(sampler.mean(x.scalar_zero_point), x, op.out)
        shape = (codes.shape[0], *places.shape[1:-1], codes.shape[1])
        return (np.moveaxis(result.reshape(shape), -1, 1),)

    return run


def _quantized(mean: Array, x: QuantParams, out: QuantParams) -> Array:
    mean *= float(x.scalar_scale) / float(out.scalar_scale)
    return round_to_codes(mean, out)


class _Sampler:
    """Rows of channels [cells, C] of a batch, and where each sample takes them from."""

    def __init__(self, op: GridSample, codes: Array, places: Array) -> None:
        self._op = op
        self._sizes = codes.shape[2:]
        self._rows = np.moveaxis(codes, 1, -1).reshape(-1, codes.shape[1])
        batch = codes.shape[0]
        samples = math.prod(places.shape[1:-1])
        images = np.arange(batch, dtype=np.int64) * math.prod(self._sizes)
        self._images = np.repeat(images, samples)
        flat = places.reshape(batch * samples, -1)
        # A place names the last axis first.
        self._places = [
            position(flat[:, -1 - axis], size, align_corners=op.align_corners)
            for axis, size in enumerate(self._sizes)
        ]

    def nearest(self, zero: int) -> Array:
        """Codes [samples, C] of the nearest cells."""
        cells, inside = zip(
            *map(partial(nearest, self._op), self._places, self._sizes),
            strict=True,
        )
        found = self._rows[self._index(cells)]
        found[~np.logical_and.reduce(inside)] = zero
        return found

    def mean(self, zero: int) -> Array:
        """Weighted means [samples, C] of codes less their zero point, in float64."""
        windows = list(map(partial(window, self._op), self._places, self._sizes))
        total = np.zeros((self._images.size, self._rows.shape[1]))
        for taps in product(*windows):
            weight = math.prod(weight for _, weight in taps)
            values = self._rows[self._index([cell for cell, _ in taps])].astype(np.float64)
            values -= zero
            values *= np.asarray(weight)[:, None]
            total += values
        return total

    def _index(self, cells: Sequence[Array]) -> Array:
        """The rows of cells that are given axis by axis."""
        row: Array = np.zeros_like(self._images)
        for cell, size in zip(cells, self._sizes, strict=True):
            row = row * size + cell
        return row + self._images
