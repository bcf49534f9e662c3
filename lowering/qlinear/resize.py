"""Resize on codes in nearest mode, else between DQ and Q."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from intonnx.ir.errors import ExportFailure
from intonnx.ir.graph import Node
from intonnx.ir.ops.resize import Resampling, Resize, ResizeNearest
from intonnx.ir.types import Dim, DType, static_shape
from intonnx.lowering.resampling import nearest_cells

from ._mover import WHOLE_BYTES, move
from .emitter import Emitter
from .registry import emitters

_KERNELS = frozenset({DType.U8, DType.I8, DType.I32})
"""The integers that onnxruntime 1.32 resizes; it moves them right in nearest mode only."""
_AXES_SINCE = 18


@emitters.register(ResizeNearest)
def resize_nearest(op: ResizeNearest, node: Node, out: Emitter) -> None:
    """Resize where it has a kernel and says the same at this opset, else one Gather an axis."""
    kind = out.type(node.operands[0])
    shape = kind.shape or ()
    sizes = static_shape([shape[axis] for axis in op.axes])
    resizes = kind.dtype in _KERNELS or not out.qlinear
    spelled = op.coordinates != "tf_half_pixel_for_nn" and op.nearest_mode != "simple"
    if sizes is not None and kind.dtype in WHOLE_BYTES and not (resizes and spelled):
        return _gather(op, sizes, node, out)
    if op.nearest_mode == "simple":
        raise ExportFailure("axes that shrink and axes that grow, of sizes that are not known")
    inputs, axes = _inputs(op, shape, out)
    return move("Resize", node, out, inputs, kernels=_KERNELS, axes=axes, **_attributes(op))


def _gather(op: ResizeNearest, sizes: tuple[int, ...], node: Node, out: Emitter) -> None:
    name, result = out.operand(node.operands[0]), node.results[0]
    gathers = []
    for axis, extent in zip(op.axes, op.extents(sizes), strict=True):
        cells = nearest_cells(op, extent)
        if not np.array_equal(cells, np.arange(extent.before)):
            gathers.append((axis, cells))
    for index, (axis, cells) in enumerate(gathers):
        inputs = [name, out.constant(cells.astype(np.int64), "cells")]
        if index + 1 < len(gathers):
            name = out.value("Gather", inputs, f"{result}.axis{axis}", axis=axis)
        else:
            out.node("Gather", inputs, [result], axis=axis)
    if not gathers:
        out.node("Identity", [name], [result])


@emitters.register(Resize)
def resize(op: Resize, node: Node, out: Emitter) -> None:
    """DQ -> Resize -> Q: on codes onnxruntime cuts fractions off."""
    attributes: dict[str, Any] = {"mode": op.mode, **_attributes(op)}
    if op.mode == "cubic":
        attributes["cubic_coeff_a"] = op.cubic_a
        attributes["exclude_outside"] = int(op.exclude_outside) or None
    if op.region is not None:
        attributes["extrapolation_value"] = op.extrapolation
    inputs, axes = _inputs(op, out.type(node.operands[0]).shape or (), out)
    out.between(node, "Resize", inputs, axes=axes, **attributes)


def _attributes(op: Resampling) -> dict[str, Any]:
    nearest = not isinstance(op, Resize) or op.mode == "nearest"
    return {
        "coordinate_transformation_mode": op.coordinates,
        "nearest_mode": op.nearest_mode if nearest else None,
        "keep_aspect_ratio_policy": None if op.policy == "stretch" else op.policy,
    }


def _inputs(
    op: Resampling, shape: Sequence[Dim], out: Emitter
) -> tuple[list[str], Sequence[int] | None]:
    """The inputs roi, scales and sizes, and the attribute `axes` where these are not all.

    Before opset 18 there is no such attribute: the other axes keep their size.
    """
    axes, rank = op.axes, len(shape)
    if out.opset < _AXES_SINCE or not axes:
        axes = tuple(range(rank))
    roi = ""
    if isinstance(op, Resize) and op.region is not None:
        roi = out.constant(np.asarray(op.region, np.float32), "region")
    chosen = None if axes == tuple(range(rank)) else axes
    if op.scales is not None:
        given: dict[int, Dim | float] = dict(zip(op.axes, op.scales, strict=True))
        scales = [given.get(axis, 1.0) for axis in axes]
        return [roi, out.constant(np.asarray(scales, np.float32), "scales")], chosen
    assert op.sizes is not None
    given = dict(zip(op.axes, op.sizes, strict=True))
    sizes = [given.get(axis, shape[axis]) for axis in axes]
    if any(isinstance(size, str) for size in sizes):
        raise ExportFailure(f"sizes for some axes of {list(shape)} need opset {_AXES_SINCE}")
    return [roi, "", out.constant(np.asarray(sizes, np.int64), "sizes")], chosen
