"""Kernels of onnxruntime whose last bit depends on the raw codes: is it the same for moved ones?

QLinearAdd, QLinearMul and QLinearAveragePool compute in float32 with codes or zero points that are
not centred. Codes and zero points 128 higher round elsewhere, which decides near a tie between two
results: one or two of the 65,536 pairs of an Add. Scales a few units in the last place away mostly
put these right, and are then what the kernel gets.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import product
from typing import ClassVar

import numpy as np

from intonnx.ir.float32 import fused_multiply_add
from intonnx.ir.ops.add import Add
from intonnx.ir.ops.avg_pool import AvgPool
from intonnx.ir.ops.multiply import Multiply
from intonnx.ir.storage import OFFSET
from intonnx.ir.types import Array, QuantParams, TensorType, static_shape
from intonnx.lowering.binary import (
    qlinear_add_fits,
    qlinear_multiply_fits,
    swaps_operands,
)
from intonnx.lowering.pooling import has_windowed_kernel, spatial_sizes

_REACH = range(-4, 5)
_STEPS = np.asarray(
    sorted(product(_REACH, _REACH), key=lambda pair: (abs(pair[0]) + abs(pair[1]), pair)), np.int32
)
"""How many units in the last place the two scales go up or down, the nearest first."""
_MOST_NEAR = 4096
"""Pairs of codes near a tie up to which scales are looked for: more are ties everywhere."""
_MOST_CELLS = 64
_UNIT = 2.0**-24


class KernelAdd(Add):
    """An Add whose QLinearAdd gets these scales, and so gives what it gave on s8 codes."""

    name: ClassVar[str] = Add.name
    scales: tuple[float, float]


class KernelMultiply(Multiply):
    """A Multiply whose QLinearMul gets these scales, and so gives what it gave on s8 codes."""

    name: ClassVar[str] = Multiply.name
    scales: tuple[float, float]


Parts = tuple[Array, Array]
Kernel = Callable[[Parts, Parts, int], Array]
"""Unrounded results [K, N] for N pairs of codes, with K pairs of scales [K, 1].

All codes and zero points are moved so far.
"""


def moved_add(op: Add, a: TensorType, b: TensorType, moved: Add) -> Add | None:
    """The Add `moved` on u8 codes, or one with kernel scales that equals `op` on s8; None: neither.

    Where no QLinearAdd is used, what is computed does not depend on the storage.
    """
    if not qlinear_add_fits(a, b, op.out):
        return moved
    orders = _orders(a, b)

    def kernel(codes: Parts, scales: Parts, offset: int) -> Array:
        ratios = [scale / op.out.scalar_scale for scale in scales]
        zeros = [np.float32(kind.params.scalar_zero_point + offset) for kind in (a, b)]
        zero = np.float32(op.out.scalar_zero_point + offset)
        raw = [(part + offset).astype(np.float32) for part in codes]
        found = []
        for first, second in orders:
            start = zero - fused_multiply_add(
                ratios[first], zeros[first], ratios[second] * zeros[second]
            )
            inner = fused_multiply_add(raw[second], ratios[second], np.asarray(start))
            found.append(fused_multiply_add(raw[first], ratios[first], inner))
        return np.concatenate(found, axis=1)

    ratio = [float(k.params.scalar_scale) / float(op.out.scalar_scale) for k in (a, b)]
    codes = _near_ties(a.params, b.params, op.out, lambda x, y: x * ratio[0] + y * ratio[1],
                       1024 * sum(ratio) * 8 * _UNIT)  # fmt: skip
    scales = _kernel_scales(kernel, codes, (a, b), op.out)
    if scales is None:
        return None
    return moved if not scales else KernelAdd(out=moved.out, scales=scales)


def moved_multiply(op: Multiply, a: TensorType, b: TensorType, moved: Multiply) -> Multiply | None:
    """The same for a Multiply."""
    if not qlinear_multiply_fits(a, b, op.out):
        return moved

    def kernel(codes: Parts, scales: Parts, offset: int) -> Array:
        ratio = (scales[0] * scales[1]) / op.out.scalar_scale
        x, y = (c.astype(np.float32) - np.float32(k.params.scalar_zero_point)
                for c, k in zip(codes, (a, b), strict=True))  # fmt: skip
        zero = np.float32(op.out.scalar_zero_point + offset)
        return np.asarray((x * y) * ratio + zero)

    ratio = float(a.params.scalar_scale) * float(b.params.scalar_scale)
    ratio /= float(op.out.scalar_scale)
    width = 1024 * 8 * _UNIT
    codes = _near_ties(a.params, b.params, op.out, lambda x, y: x * y * ratio, width)
    scales = _kernel_scales(kernel, codes, (a, b), op.out)
    if scales is None:
        return None
    return moved if not scales else KernelMultiply(out=moved.out, scales=scales)


def pool_moves(op: AvgPool, x: TensorType) -> bool:
    """Whether QLinearAveragePool gives the same on moved codes: no mean comes close to a tie."""
    if not has_windowed_kernel(op, x) or x.shape is None:
        return True
    sizes = static_shape(spatial_sizes(op, x.shape))
    if sizes is not None and sizes == op.kernel and not any(op.padding(sizes)):
        return True  # the arithmetic of the global pool
    cells = math.prod(op.kernel)
    if cells > _MOST_CELLS:
        return False
    whole = op.count_include_pad or not (any(op.pads) or op.ceil_mode or op.auto_pad != "NOTSET")
    ratio = float(x.params.scalar_scale) / float(op.out.scalar_scale)
    for count in [cells] if whole else range(1, cells + 1):
        means = np.arange(-255 * count, 255 * count + 1) * (ratio / count)
        means = means[np.abs(means) < 2 * OFFSET + 1]
        error = (count + 8) * 2 * _UNIT * max(512.0, 255 * ratio)
        if np.any(np.abs(means - np.floor(means) - 0.5) < error):
            return False
    return True


def _orders(a: TensorType, b: TensorType) -> list[tuple[int, int]]:
    """In which order the kernel takes the operands; both when the shapes are not known."""
    shapes = static_shape(a.shape), static_shape(b.shape)
    if shapes[0] is None or shapes[1] is None:
        return [(0, 1), (1, 0)]
    return [(1, 0) if swaps_operands(shapes[0], shapes[1]) else (0, 1)]


def _near_ties(
    a: QuantParams,
    b: QuantParams,
    out: QuantParams,
    exact: Callable[[Array, Array], Array],
    width: float,
) -> Parts:
    """The pairs of s8 codes whose exact result is this close to a tie, and is in range."""
    codes = np.arange(-OFFSET, OFFSET)
    x, y = (codes.astype(np.float64) - p.scalar_zero_point for p in (a, b))
    value = exact(x[:, None], y)
    zero = out.scalar_zero_point
    inside = (value > out.qmin - zero - 2) & (value < out.qmax - zero + 2)
    near = inside & (np.abs(value - np.floor(value) - 0.5) < max(width, 2.0**-12))
    first, second = np.nonzero(near)
    return codes[first], codes[second]


def _kernel_scales(
    kernel: Kernel, codes: Parts, kinds: Sequence[TensorType], out: QuantParams
) -> tuple[float, float] | tuple[()] | None:
    """Scales with which moved codes give the results of these; () for those of the types."""
    a, b = (np.asarray([kind.params.scalar_scale]) for kind in kinds)
    wanted = np.clip(np.rint(kernel(codes, (a[:, None], b[:, None]), 0)), out.qmin, out.qmax)
    for steps in (np.zeros((1, 2), np.int32), _STEPS):
        scales = _stepped(a, steps[:, :1]), _stepped(b, steps[:, 1:])
        found = np.clip(np.rint(kernel(codes, scales, OFFSET)), 0, 255) - OFFSET
        (fits,) = np.nonzero(np.all(found == wanted, axis=1))
        if fits.size:
            best = [float(scale[fits[0], 0]) for scale in scales]
            return (best[0], best[1]) if len(steps) > 1 else ()
        if codes[0].size > _MOST_NEAR:
            break
    return None


def _stepped(scale: Array, steps: Array) -> Array:
    """Scales so many units in the last place away."""
    return (scale.view(np.int32) + steps).view(np.float32)
