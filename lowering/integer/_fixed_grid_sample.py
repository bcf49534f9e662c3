"""Sampling in integers alone, for the numerics `fixed`.

The cells and weights of a place depend on its code and the size of the axis: they are tables. Real
places, which enter the graph, are turned into cells and weights where they are read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from intonnx.ir.errors import CompileFailure
from intonnx.ir.ops.grid_sample import GridSample
from intonnx.ir.quantization import all_codes, dequantize_array
from intonnx.ir.types import Array, QuantParams, TensorType
from intonnx.lowering import fixed_point
from intonnx.lowering.fixed_point import Scaling
from intonnx.lowering.requantize import farthest, limited, look_up

from ._fixed_resize import WEIGHT_BITS, whole_weights
from ._sampling import nearest, position, window


class Taps(NamedTuple):
    """The cells along one axis, and their whole weights: one array for each cell of the window."""

    cells: Sequence[Array]
    weights: Sequence[Array]


Places = Callable[[Array, Sequence[int]], list[Taps]]
"""From the grid [..., n] and the sizes of the spatial axes to the taps of each axis, [...]."""


def places_of(op: GridSample, grid: TensorType, constant: Array | None) -> Places:
    """How the places of a grid are read. Raises CompileFailure for codes of more than 16 bits."""
    if grid.quant is None:
        known = lru_cache(maxsize=4)(lambda sizes: _read(op, _required(constant), sizes))
        if constant is not None:
            return lambda places, sizes: known(tuple(sizes))
        return lambda places, sizes: _read(op, places, sizes)
    params = grid.quant
    by_coordinate = params.axis == (grid.rank or 0) - 1 and params.block is None
    if params.storage.bits > 16 or not (params.per_tensor or by_coordinate):
        raise CompileFailure("no fixed form: places in more than 16 bits, or scales along an axis")
    tables = lru_cache(maxsize=16)(lambda sizes: _tables(op, params, sizes))

    def find(codes: Array, sizes: Sequence[int]) -> list[Taps]:
        found = []
        for axis, table in enumerate(tables(tuple(sizes))):
            place = codes[..., -1 - axis]
            cells = [look_up(cell, place) for cell in table.cells]
            found.append(Taps(cells, [look_up(weight, place) for weight in table.weights]))
        return found

    return find


def _required(array: Array | None) -> Array:
    assert array is not None
    return array


def _tables(op: GridSample, params: QuantParams, sizes: Sequence[int]) -> list[Taps]:
    """The taps of every code, for each axis."""
    columns = all_codes(params)[:, None]
    if not params.per_tensor:
        columns = np.repeat(columns, params.scale.size, axis=1)
        params = params.with_axis(1)
    real = dequantize_array(columns, params)
    return _read(op, np.broadcast_to(real, (len(columns), len(sizes))), sizes)


def _read(op: GridSample, places: Array, sizes: Sequence[int]) -> list[Taps]:
    found = []
    for axis, size in enumerate(sizes):
        # A place names the last axis first.
        place = position(places[..., -1 - axis], size, align_corners=op.align_corners)
        if op.mode == "nearest":
            cell, inside = nearest(op, place, size)
            found.append(Taps([cell], [inside.astype(np.int64)]))
            continue
        taps = window(op, place, size)
        weights = whole_weights(np.stack([weight for _, weight in taps]))
        found.append(Taps([cell for cell, _ in taps], list(weights)))
    return found


class FixedSampler:
    """Codes at places, and their weighted means.

    Args:
        places: from `places_of`.
        nearest: from codes of the operand to codes of the result.
    """

    def __init__(
        self, op: GridSample, x: QuantParams, places: Places, nearest: Callable[[Array], Array]
    ) -> None:
        self._op, self._x = op, x
        self._places, self._nearest = places, nearest
        ratio = Fraction(float(x.scalar_scale)) / Fraction(float(op.out.scalar_scale))
        factor = fixed_point.multiplier(fixed_point.object_array([ratio / (1 << WEIGHT_BITS)]))
        self._scaling = Scaling(factor, farthest(op.out))

    def __call__(self, codes: Array, grid: Array) -> Array:
        """Codes [N, *spatial', C] for codes [N, C, *spatial] and places [N, *spatial', n]."""
        sizes = codes.shape[2:]
        rows = np.moveaxis(codes, 1, -1)
        taps = self._places(grid, sizes)
        image = np.arange(len(codes)).reshape(-1, *[1] * (grid.ndim - 2))
        zero = self._x.scalar_zero_point
        if self._op.mode == "nearest":
            found = rows[(image, *(tap.cells[0] for tap in taps))]
            inside = np.logical_and.reduce([tap.weights[0] for tap in taps])
            kept = np.where(inside[..., None], found, found.dtype.type(zero))
            return self._nearest(kept)
        total: Any = 0
        for chosen in product(*(range(len(tap.cells)) for tap in taps)):
            cells = [tap.cells[i] for tap, i in zip(taps, chosen, strict=True)]
            weight = _product([tap.weights[i] for tap, i in zip(taps, chosen, strict=True)])
            values = rows[(image, *cells)].astype(np.int64)
            values -= zero
            total = total + values * weight[..., None]
        return limited(self._scaling(total), self._op.out)


def _product(weights: Sequence[Array]) -> Array:
    """The product of weights of 30 binary digits, rounded to as many after each step."""
    whole = weights[0]
    for weight in weights[1:]:
        whole = fixed_point.rounded_shift(whole * weight, WEIGHT_BITS)
    return whole
