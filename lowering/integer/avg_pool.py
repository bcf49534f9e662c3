"""Average pools: float32 sums in row order, as onnxruntime adds them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from intonnx.ir.ops.avg_pool import AvgPool, AvgPool1d, AvgPool2d, AvgPool3d
from intonnx.ir.types import Array, QuantParams, TensorType, static_shape
from intonnx.lowering.pooling import has_windowed_kernel, spatial_sizes
from intonnx.lowering.reductions import largest_code
from intonnx.lowering.requantize import round_to_codes

from ._fixed_mean import FixedMean
from ._pool import Windows, as_given, channels_first, dequantized
from .exact import INT32_LIMIT
from .global_avg_pool import mean_of_codes
from .kernel import Context, Kernel, kernels


@kernels.register(AvgPool1d, AvgPool2d, AvgPool3d)
def avg_pool(op: AvgPool, context: Context) -> Kernel:
    """QLinearAveragePool where onnxruntime has it, else and in `qdq` DQ -> AveragePool -> Q.

    onnxruntime's AveragePool adds in row order from opset 19 on; below, it adds columns first, so
    that a mean may round the other way (one quantum).
    """
    x = context.operand(0)
    if context.numerics == "fixed":
        return _fixed(op, x)
    fused = context.numerics == "qlinear" and has_windowed_kernel(op, x)
    rounded = _rounded_after_zero_point if fused else _rounded_before_zero_point

    def run(operands: Sequence[Any]) -> tuple[Array, ...]:
        codes = channels_first(operands[0], op.channels_last)
        whole = codes.shape[2:] == op.kernel and not any(op.padding(codes.shape[2:]))
        if fused and whole:
            # onnxruntime takes the global pool here, whose arithmetic differs.
            result = mean_of_codes(codes, x.params, op.out)
        else:
            result = rounded(_means(op, codes, x), op.out)
        return (as_given(result, op.channels_last),)

    return run


def _fixed(op: AvgPool, x: TensorType) -> Kernel:
    """Exact sums, and a multiplier for each count of cells that a window has."""
    mean = FixedMean(x.params, op.out)
    sizes = None if x.shape is None else static_shape(spatial_sizes(op, x.shape))
    if sizes is not None:
        mean.prepare(Windows(op, sizes).cell_counts(with_padding=op.count_include_pad))
    # No window has more cells than this.
    wide = largest_code(x.params) * math.prod(op.kernel) >= INT32_LIMIT

    def run(operands: Sequence[Any]) -> tuple[Array, ...]:
        codes = channels_first(operands[0], op.channels_last)
        values: Array = codes.astype(np.int64 if wide else np.int32)
        values -= x.params.scalar_zero_point
        windows = Windows(op, codes.shape[2:])
        counts = windows.cell_counts(with_padding=op.count_include_pad)
        result = mean(_added(windows, values), counts)
        return (as_given(result, op.channels_last),)

    return run


def _added(windows: Windows, values: Array) -> Array:
    """Sums [N, C, *counts] in the type of `values`; a cell of the padding is 0."""
    cells = windows.cells(windows.extended(values, 0))
    total = next(cells).copy(order="K")
    for cell in cells:
        total += cell
    return total


def _means(op: AvgPool, codes: Array, x: TensorType) -> Array:
    """float32 [N, C, *counts]: a cell of the padding is +0 and changes no sum."""
    windows = Windows(op, codes.shape[2:])
    total = _added(windows, dequantized(codes, x.params))
    total /= windows.cell_counts(with_padding=op.count_include_pad).astype(np.float32)
    return total


def _rounded_after_zero_point(means: Array, out: QuantParams) -> Array:
    """The kernel's rounding: half to even after the zero point was added. Overwrites `means`."""
    means /= out.scalar_scale
    means += np.float32(out.scalar_zero_point)
    np.rint(means, out=means)
    np.clip(means, out.qmin, out.qmax, out=means)
    codes: Array = means.astype(out.storage.numpy)
    return codes


def _rounded_before_zero_point(means: Array, out: QuantParams) -> Array:
    """QuantizeLinear. Overwrites `means`."""
    with np.errstate(over="ignore"):
        means /= out.scalar_scale
    return round_to_codes(means, out)
