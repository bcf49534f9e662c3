"""Operators of ONNX that the onnx package's reference implementation does not run as it should.

Each takes the place of the reference operator of its name: it gives the same results where that
one gives any, and the sizes of onnxruntime where that one fails or counts windows otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx.reference.op_run import OpRun
from onnx.reference.ops.op_max_pool import MaxPool as ReferenceMaxPool

from intonnx.ir.ops._pool import Pool
from intonnx.ir.ops.max_pool import MaxPool1d, MaxPool2d, MaxPool3d
from intonnx.ir.types import Array

from .integer._pool import Windows

_POOLS: dict[int, type[Pool]] = {1: MaxPool1d, 2: MaxPool2d, 3: MaxPool3d}


class AveragePool(OpRun):
    """The reference refuses `ceil_mode` with `auto_pad`."""

    op_domain = ""

    def _run(self, x: Array, count_include_pad: int = 0, **attributes: Any) -> tuple[Array]:
        windows = _windows(x, attributes)
        cells = windows.cells(windows.extended(x, 0.0))
        total = next(cells).copy()
        for cell in cells:
            total += cell
        counts = windows.cell_counts(with_padding=bool(count_include_pad))
        return ((total / counts.astype(x.dtype)).astype(x.dtype),)


class GlobalAveragePool(OpRun):
    """The reference divides by zero when there is no image."""

    op_domain = ""

    def _run(self, x: Array) -> tuple[Array]:
        axes = tuple(range(2, x.ndim))
        return (np.mean(x, axis=axes, keepdims=True).astype(x.dtype),)


class Flatten(OpRun):
    """The reference leaves a size to numpy, which cannot tell it when there are no elements."""

    op_domain = ""

    def _run(self, x: Array, axis: int = 1) -> tuple[Array]:
        axis = axis + x.ndim if axis < 0 else axis
        return (x.reshape(math.prod(x.shape[:axis]), math.prod(x.shape[axis:])),)


class MaxPool(ReferenceMaxPool):
    """The reference counts no window of a kernel that is larger than the data."""

    op_domain = ""

    def _run(self, *operands: Any, **attributes: Any) -> Any:
        x: Array = operands[0]
        if len(self.onnx_node.output) > 1 or x.ndim - 2 not in _POOLS or x.dtype.kind not in "fiu":
            reference: Any = super()
            return reference._run(x, **attributes)
        windows = _windows(x, attributes)
        lowest = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
        cells = windows.cells(windows.extended(x, lowest))
        largest = next(cells)
        for cell in cells:
            largest = np.maximum(largest, cell)
        return (np.array(largest),)


class Pad(OpRun):
    """The reference does not crop: that is what a negative number of cells asks for."""

    op_domain = ""

    def _run(
        self,
        x: Array,
        pads: Any = None,
        value: Any = None,
        axes: Any = None,
        mode: Any = "constant",
    ) -> tuple[Array]:
        sides = np.asarray(pads, np.int64).reshape(2, -1)
        widths = np.zeros((x.ndim, 2), np.int64)
        widths[list(range(x.ndim)) if axes is None else np.asarray(axes)] = sides.T
        crops = [
            slice(max(0, -before), size - max(0, -after))
            for (before, after), size in zip(widths.tolist(), x.shape, strict=True)
        ]
        added = np.maximum(widths, 0)
        options: Any = {}
        if mode == "constant" and value is not None:
            options["constant_values"] = np.asarray(value).reshape(())[()]
        # onnxruntime pads with the cells that are left.
        result: Array = np.pad(x[tuple(crops)], added, mode=mode, **options)
        return (result.astype(x.dtype),)


def _windows(x: Array, attributes: dict[str, Any]) -> Windows:
    n = x.ndim - 2
    auto_pad = attributes.get("auto_pad") or "NOTSET"
    ones, pads = (1,) * n, tuple(attributes.get("pads") or (0,) * (2 * n))
    op = _POOLS[n](
        kernel=tuple(attributes["kernel_shape"]),
        strides=tuple(attributes.get("strides") or ones),
        dilations=tuple(attributes.get("dilations") or ones),
        pads=pads if auto_pad == "NOTSET" else (0,) * (2 * n),
        ceil_mode=bool(attributes.get("ceil_mode")),
        auto_pad=auto_pad,
    )
    op.check_window()
    return Windows(op, x.shape[2:])


REFERENCE_OPS: Sequence[type[OpRun]] = (AveragePool, Flatten, GlobalAveragePool, MaxPool, Pad)
