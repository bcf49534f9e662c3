"""Quantize and dequantize arrays of constants, exactly as the operators do at run time."""

from __future__ import annotations

import numpy as np

from .types import Array, QuantParams


def quantize_array(x: Array, params: QuantParams) -> Array:
    """Codes of real values: clamp(x / scale) to even, plus the zero point, in float32.

    `x` has any shape (per-axis parameters fit it); the result has the storage type's numpy type.
    NaN gives the smallest code. Source: ONNX QuantizeLinear-21.
    """
    scale, zero = expand(params, x.shape)
    with np.errstate(over="ignore", invalid="ignore"):
        v = x.astype(np.float32) / scale
    low = (params.qmin - zero).astype(np.float32)
    high = (params.qmax - zero).astype(np.float32)
    v = np.rint(np.minimum(np.where(np.isnan(v), low, np.maximum(v, low)), high))
    codes: Array = (v.astype(np.int64) + zero).astype(params.storage.numpy)
    return codes


def dequantize_array(codes: Array, params: QuantParams) -> Array:
    """Real values of codes, in the expressed type: f32(codes - zero_point) * scale.

    The difference is exact, also where onnxruntime's int32 would wrap; a product that is too large
    becomes infinite. Source: ONNX DequantizeLinear-21.
    """
    scale, zero = expand(params, codes.shape)
    with np.errstate(over="ignore"):
        real = np.asarray((codes.astype(np.int64) - zero).astype(np.float32) * scale)
        return real.astype(params.expressed.numpy, copy=False)


def all_codes(params: QuantParams) -> Array:
    """Every code of an 8-bit or 16-bit storage type, in the order of its unsigned bit pattern."""
    bits = 8 if params.storage.bits <= 8 else 16
    unsigned = np.arange(1 << bits).astype(f"u{bits // 8}")
    codes: Array = unsigned.view(params.storage.numpy)
    return codes


def keeps_order(params: QuantParams) -> bool:
    """Whether a larger code always has a larger real value: none are rounded to the same one.

    For per-tensor parameters of up to 16 bits.
    """
    codes = np.arange(params.qmin, params.qmax + 1)
    real = dequantize_array(codes.astype(params.storage.numpy), params)
    return bool(np.all(real[1:] > real[:-1]))


def expand(params: QuantParams, shape: tuple[int, ...]) -> tuple[Array, Array]:
    """Scale (float32) and zero point (int64) that broadcast over a tensor of this shape."""
    if params.block is None or params.axis is None:
        return params.along(len(shape))
    scale, zero = (expand_blocks(a, params, shape) for a in (params.scale, params.zero_point))
    return scale, zero


def expand_blocks(values: Array, params: QuantParams, shape: tuple[int, ...]) -> Array:
    """One value for each block of parameters with blocks, spread over a tensor of this shape."""
    axis = params.axis or 0
    return np.repeat(values, params.block or 1, axis=axis).take(range(shape[axis]), axis=axis)
