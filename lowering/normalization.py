"""The arithmetic of batch normalization, which the integer lowering and the export share.

Source: onnxruntime's BatchNormalization on the CPU: float32, every step rounded.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from intonnx.ir.ops.batch_norm import BatchNorm
from intonnx.ir.quantization import all_codes, dequantize_array, quantize_array
from intonnx.ir.types import Array, QuantParams


def normalized(op: BatchNorm, x: QuantParams, codes: Array, statistics: Sequence[Array]) -> Array:
    """Codes [N, C, ...] of the result; `statistics` are scale, bias, mean and variance [C]."""
    factor, addend = _affine(op, statistics)
    shape = (-1, *[1] * (codes.ndim - 2))
    with np.errstate(over="ignore", invalid="ignore"):
        real = dequantize_array(codes, x) * factor.reshape(shape)
        real += addend.reshape(shape)
    return quantize_array(real, op.out)


def channel_tables(op: BatchNorm, x: QuantParams, statistics: Sequence[Array]) -> Array:
    """The result [C, 256] for every code in each channel, at the code's unsigned bit pattern."""
    channels = statistics[0].size
    codes = np.broadcast_to(all_codes(x), (1, channels, 256))
    if x.axis not in (None, 1):
        raise ValueError(f"no tables by channel for scales along axis {x.axis}")
    tables: Array = normalized(op, x, codes, statistics)[0]
    return tables


def _affine(op: BatchNorm, statistics: Sequence[Array]) -> tuple[Array, Array]:
    scale, bias, mean, variance = statistics
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        inverse = np.float32(1) / np.sqrt(variance + np.float32(op.epsilon))
        factor = inverse * scale
        return factor, bias - mean * factor
