"""Quantize, dequantize, requantize, and everything that accumulates products, the slow plain way.

A zero point is a numpy scalar (or per-axis array) whose dtype is the storage type of the codes.
Scales are float32. Every float step rounds to float32 in the order written.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from support.float32 import F32, Array, f32, limits


def along(values: Any, axis: int | None, rank: int) -> Array:
    """Shape per-axis parameters (1-D) so that they broadcast along `axis` of a `rank`-D array."""
    v = np.asarray(values)
    if axis is None or v.ndim == 0:
        return v.reshape(()) if v.size == 1 else v
    shape = [1] * rank
    shape[axis] = v.size
    return v.reshape(shape)


def quantize(x: Any, scale: Any, zero_point: Any, axis: int | None = None) -> Array:
    """QuantizeLinear: f32 array -> codes of zero_point's dtype. NaN becomes the lowest code."""
    x = f32(x)
    zero = np.asarray(zero_point)
    with np.errstate(over="ignore", invalid="ignore"):
        value = np.asarray(x / along(f32(scale), axis, x.ndim))
    return round_to_codes(value, along(zero, axis, x.ndim))


def round_to_codes(value: Any, zero_point: Any) -> Array:
    """Clamp f32 to [low - zero, high - zero], round half to even, add zero -> codes."""
    zero = np.asarray(zero_point)
    low, high = limits(zero.dtype)
    z = zero.astype(np.int64)
    value = f32(value)
    clamped = np.minimum(np.where(np.isnan(value), f32(low - z), value), f32(high - z))
    clamped = np.maximum(clamped, f32(low - z))
    return np.asarray(np.rint(clamped).astype(np.int64) + z).astype(zero.dtype)


def dequantize(q: Any, scale: Any, zero_point: Any, axis: int | None = None) -> Array:
    """DequantizeLinear: codes (u8, s8, u16, s16, s32) -> f32."""
    q = np.asarray(q)
    difference = q.astype(np.int64) - along(np.asarray(zero_point), axis, q.ndim).astype(np.int64)
    return difference.astype(np.float32) * along(f32(scale), axis, q.ndim)


def multiplier(*parts: Any, over: Any) -> Array:
    """((p0 * p1) * ...) / over in float32, left to right."""
    product = f32(parts[0])
    for part in parts[1:]:
        product = product * f32(part)
    return product / f32(over)


def requantize(acc: Any, k: Any, zero_point: Any) -> Array:
    """Accumulators (int64 within int32) times a float32 multiplier -> codes. k broadcasts."""
    return round_to_codes(np.asarray(acc).astype(np.int32).astype(np.float32) * f32(k), zero_point)


def requantize_literal(q: Any, sx: Any, zx: Any, sy: Any, zy: Any) -> Array:
    """DequantizeLinear then QuantizeLinear, per tensor: codes -> codes of zy's dtype."""
    return quantize(dequantize(q, sx, zx), sy, zy)


def conv_accumulator(
    x: Any,
    w: Any,
    zx: Any,
    zw: Any,
    bias: Any = None,
    *,
    strides: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    group: int = 1,
) -> Array:
    """x [N, C, *D] codes, w [O, C/group, *K] codes, zw scalar or [O], bias s32 [O] -> int64.

    Cells outside x count as zx, that is as nothing. Python ints throughout.
    """
    x, w = np.asarray(x).astype(np.int64), np.asarray(w).astype(np.int64)
    rank = x.ndim - 2
    strides, dilations = list(strides or [1] * rank), list(dilations or [1] * rank)
    pads = list(pads or [0] * (2 * rank))
    per_filter = np.broadcast_to(np.asarray(zw).astype(np.int64).reshape(-1), (w.shape[0],))
    out = [
        (x.shape[2 + d] + pads[d] + pads[rank + d] - dilations[d] * (w.shape[2 + d] - 1) - 1)
        // strides[d]
        + 1
        for d in range(rank)
    ]
    acc = np.zeros((x.shape[0], w.shape[0], *out), np.int64)
    per_group = w.shape[0] // group
    for o in range(w.shape[0]):
        first = (o // per_group) * w.shape[1]
        for position in np.ndindex(*out):
            total = np.full(x.shape[0], 0 if bias is None else int(np.asarray(bias)[o]), object)
            for tap in np.ndindex(*w.shape[2:]):
                at = tuple(
                    p * s + t * d - b
                    for p, s, t, d, b in zip(position, strides, tap, dilations, pads, strict=False)
                )
                if any(i < 0 or i >= n for i, n in zip(at, x.shape[2:], strict=True)):
                    continue
                for c in range(w.shape[1]):
                    weight = int(w[(o, c, *tap)]) - int(per_filter[o])
                    for n in range(x.shape[0]):
                        total[n] += (int(x[(n, first + c, *at)]) - int(zx)) * weight
            for n in range(x.shape[0]):
                acc[(n, o, *position)] = total[n]
    return acc


def qlinear_conv(
    x: Any, sx: Any, zx: Any, w: Any, sw: Any, zw: Any, sy: Any, zy: Any, bias: Any = None,
    **geometry: Any,
) -> Array:  # fmt: skip
    """QLinearConv: x codes [N, C, *D], w codes [O, C/group, *K], sw and zw scalar or [O]."""
    acc = conv_accumulator(x, w, zx, zw, bias, **geometry)
    return requantize(acc, along(multiplier(sx, sw, over=sy), 1, acc.ndim), zy)


def matmul_accumulator(a: Any, b: Any, za: Any = 0, zb: Any = 0) -> Array:
    """a [..., M, K], b [..., K, N] codes, zb scalar or [N] -> int64 [..., M, N], in Python ints."""
    a = np.asarray(a).astype(np.int64) - np.asarray(za).astype(np.int64)
    b = np.asarray(b).astype(np.int64) - np.asarray(zb).astype(np.int64)
    return np.asarray(np.matmul(a.astype(object), b.astype(object))).astype(np.int64)


def qlinear_matmul(a: Any, sa: Any, za: Any, b: Any, sb: Any, zb: Any, sy: Any, zy: Any) -> Array:
    """QLinearMatMul: sb and zb scalar or [N]."""
    return requantize(matmul_accumulator(a, b, za, zb), multiplier(sa, sb, over=sy), zy)


def qgemm(
    a: Any, sa: Any, za: Any, b: Any, sb: Any, zb: Any, c: Any = None, sy: Any = None,
    zy: Any = None, *, alpha: float = 1.0, trans_a: bool = False, trans_b: bool = False,
) -> Array:  # fmt: skip
    """com.microsoft QGemm: a, b 2-D codes, c s32 that broadcasts to [M, N]; f32 out without sy."""
    a, b = np.asarray(a), np.asarray(b)
    acc = matmul_accumulator(a.T if trans_a else a, b.T if trans_b else b, za, zb)
    if c is not None:
        acc = acc + np.asarray(c).astype(np.int64)
    scale = (F32(alpha) * f32(sa)) * f32(sb)
    if sy is None:
        return acc.astype(np.int32).astype(np.float32) * scale
    return requantize(acc, scale / f32(sy), zy)


def matmul_integer_to_float(
    a: Any, b: Any, sa: Any, sb: Any, za: Any, zb: Any, bias: Any = None
) -> Array:
    """MatMulIntegerToFloat: sb and zb scalar or [N], bias f32 [N] -> f32 [..., M, N]."""
    product = matmul_accumulator(a, b, za, zb).astype(np.int32).astype(np.float32)
    value = product * (f32(sa) * f32(sb))
    return np.asarray(value if bias is None else value + f32(bias))


def dynamic_quantize(x: Any) -> tuple[Array, np.float32, np.uint8]:
    """DynamicQuantizeLinear: finite f32 array -> (u8 codes, scale, zero point)."""
    x = f32(x)
    low, high = min(F32(x.min()), F32(0)), max(F32(x.max()), F32(0))
    scale = F32(1) if low == high else (high - low) / F32(255)
    zero = np.uint8(np.rint(min(max(F32(0) - low / scale, F32(0)), F32(255))))
    return quantize(x, scale, zero), scale, zero


def dynamic_quantize_matmul(a: Any, b: Any, sb: Any, zb: Any, bias: Any = None) -> Array:
    """DynamicQuantizeMatMul: a f32 [..., M, K], b codes [K, N] -> f32 [..., M, N]."""
    codes, scale, zero = dynamic_quantize(a)
    return matmul_integer_to_float(codes, b, scale, sb, zero, zb, bias)


def windows(
    shape: Sequence[int], kernel: Sequence[int], strides: Sequence[int], pads: Sequence[int],
    dilations: Sequence[int], ceil_mode: bool = False,
) -> list[tuple[tuple[int, ...], list[tuple[int, ...]]]]:  # fmt: skip
    """Every output position of a pool with the valid input cells of its window, in row order."""
    rank = len(shape)
    out = []
    for d in range(rank):
        span = shape[d] + pads[d] + pads[rank + d] - dilations[d] * (kernel[d] - 1) - 1
        size = (math.ceil(span / strides[d]) if ceil_mode else span // strides[d]) + 1
        if ceil_mode and (size - 1) * strides[d] >= shape[d] + pads[d]:
            size -= 1  # a window that would start in the padding after the end is dropped
        out.append(size)
    result = []
    for position in np.ndindex(*out):
        starts = [p * s - b for p, s, b in zip(position, strides, pads, strict=False)]
        axes = [
            [start + t * dil for t in range(k) if 0 <= start + t * dil < n]
            for start, k, dil, n in zip(starts, kernel, dilations, shape, strict=True)
        ]
        result.append((tuple(position), list(itertools.product(*axes))))
    return result
