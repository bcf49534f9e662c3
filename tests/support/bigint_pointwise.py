"""Element-wise, table, pool, softmax and mover operators on codes, the slow plain way."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from support import mlas
from support.bigint_linear import (
    dequantize,
    multiplier,
    quantize,
    requantize,
    requantize_literal,
    windows,
)
from support.float32 import F32, Array, f32, fma, saturate, to_int32


def innermost_is_scalar(shape: Sequence[int], other: Sequence[int]) -> bool:
    """Whether `shape` is the broadcast side along the innermost axis that is longer than one.

    Only the axes that both have are looked at, or the last one beside a scalar. True also when none
    of these is longer than one. The broadcasting loop of onnxruntime begins so.
    """
    if not shape or not other:
        return not shape or shape[-1] == 1
    for m, t in zip(reversed(shape), reversed(other), strict=False):
        if max(m, t) > 1:
            return m == 1
    return True


def qlinear_add(a: Any, sa: Any, za: Any, b: Any, sb: Any, zb: Any, sy: Any, zy: Any) -> Array:
    """QLinearAdd: u8 or s8 codes that broadcast. Fused multiply-adds, on raw codes.

    The kernel takes (vector, scalar): when a is broadcast along the innermost axis the operands
    change places, which changes the last bit.
    """
    a, b = np.asarray(a), np.asarray(b)
    if innermost_is_scalar(a.shape, b.shape):
        a, sa, za, b, sb, zb = b, sb, zb, a, sa, za
    ra, rb = f32(sa) / f32(sy), f32(sb) / f32(sy)
    fixed = f32(zy) - fma(ra, f32(za), rb * f32(zb))
    value = fma(a, ra, fma(b, rb, fixed))
    return saturate(to_int32(value), np.asarray(zy).dtype)


def qlinear_mul(a: Any, sa: Any, za: Any, b: Any, sb: Any, zb: Any, sy: Any, zy: Any) -> Array:
    """QLinearMul: u8 or s8 codes that broadcast; rounds after the zero point is added."""
    product = (np.asarray(a).astype(np.int64) - int(za)) * (
        np.asarray(b).astype(np.int64) - int(zb)
    )
    value = product.astype(np.float32) * multiplier(sa, sb, over=sy) + f32(zy)
    return saturate(to_int32(value), np.asarray(zy).dtype)


def table(sx: Any, zx: Any, sy: Any, zy: Any, function: Callable[[Array], Array]) -> Array:
    """quantize(f(dequantize(q))) for every 8-bit code q, in the order of the code's bits [256]."""
    codes = np.arange(256, dtype=np.uint8).view(np.asarray(zx).dtype)
    return quantize(function(dequantize(codes, sx, zx)), sy, zy)


def look_up(codes: Any, entries: Array) -> Array:
    """entries[bits of code] for 8-bit codes of any shape."""
    return entries[np.ascontiguousarray(codes).view(np.uint8)]


def qlinear_leaky_relu(x: Any, sx: Any, zx: Any, sy: Any, zy: Any, alpha: float = 0.01) -> Array:
    """QLinearLeakyRelu: a table."""
    return look_up(x, table(sx, zx, sy, zy, lambda v: mlas.leaky_relu(v, alpha)))


def qlinear_sigmoid(x: Any, sx: Any, zx: Any, sy: Any, zy: Any) -> Array:
    """QLinearSigmoid: a table over onnxruntime's rational logistic, not libm's."""
    return look_up(x, table(sx, zx, sy, zy, mlas.logistic))


def rescale(x: Any, sx: Any, zx: Any, sy: Any, zy: Any) -> Array:
    """One input of QLinearConcat or QLinearWhere: a copy when the parameters are equal."""
    if f32(sx) == f32(sy) and int(zx) == int(zy):
        return np.asarray(x)
    return requantize_literal(x, sx, zx, sy, zy)


def qlinear_concat(sy: Any, zy: Any, inputs: Sequence[tuple[Any, Any, Any]], axis: int) -> Array:
    """QLinearConcat of (codes, scale, zero point) triples."""
    return np.concatenate([rescale(x, s, z, sy, zy) for x, s, z in inputs], axis)


def qlinear_where(
    condition: Any, x: Any, sx: Any, zx: Any, y: Any, sy: Any, zy: Any, sz: Any, zz: Any
) -> Array:
    """QLinearWhere: both branches rescaled to (sz, zz), then chosen; all broadcast."""
    return np.where(condition, rescale(x, sx, zx, sz, zz), rescale(y, sy, zy, sz, zz))


def _geometry(
    x: Array, kernel: Sequence[int], options: dict[str, Any]
) -> list[tuple[tuple[int, ...], list[tuple[int, ...]]]]:
    rank = len(kernel)
    return windows(
        x.shape[2:],
        kernel,
        options.get("strides") or [1] * rank,
        options.get("pads") or [0] * (2 * rank),
        options.get("dilations") or [1] * rank,
        options.get("ceil_mode", False),
    )


def _pooled(x: Array, cells: Sequence[Any], dtype: Any) -> Array:
    """Room for the result, spatial axes first: [*D, N, C]."""
    return np.zeros((*(i + 1 for i in cells[-1][0]), *x.shape[:2]), dtype)


def qlinear_average_pool(
    x: Any, sx: Any, zx: Any, sy: Any, zy: Any, kernel: Sequence[int],
    *, count_include_pad: bool = False, **options: Any,
) -> Array:  # fmt: skip
    """QLinearAveragePool, NCHW: x codes [N, C, *D]; options strides, pads, ceil_mode.

    A kernel that equals the image, without pads, takes the global pool's arithmetic instead.
    """
    x = np.asarray(x)
    if tuple(kernel) == x.shape[2:] and not any(options.get("pads") or []):
        return qlinear_global_average_pool(x, sx, zx, sy, zy)
    cells = _geometry(x, kernel, options)
    values = np.moveaxis(dequantize(x, sx, zx), (0, 1), (-2, -1))
    out = _pooled(x, cells, np.asarray(zy).dtype)
    for position, window in cells:
        total = np.zeros(x.shape[:2], np.float32)
        for at in window:
            total = total + values[at]
        mean = total / F32(math.prod(kernel) if count_include_pad else len(window))
        rounded = to_int32(mean / f32(sy) + f32(zy))
        out[position] = saturate(rounded, out.dtype)
    return np.moveaxis(out, (-2, -1), (0, 1))


def qlinear_global_average_pool(x: Any, sx: Any, zx: Any, sy: Any, zy: Any) -> Array:
    """QLinearGlobalAveragePool, NCHW: x codes [N, C, *D] -> [N, C, 1...]."""
    x = np.asarray(x)
    axes = tuple(range(2, x.ndim))
    count = math.prod(x.shape[2:])
    acc = x.astype(np.int64).sum(axes, keepdims=True) - int(zx) * count
    return requantize(acc, f32(sx) / (f32(sy) * F32(count)), zy)


def max_pool(x: Any, kernel: Sequence[int], **options: Any) -> Array:
    """MaxPool on codes or floats, NCHW; options strides, pads, dilations, ceil_mode."""
    x = np.asarray(x)
    cells = _geometry(x, kernel, options)
    out = _pooled(x, cells, x.dtype)
    values = np.moveaxis(x, (0, 1), (-2, -1))
    for position, window in cells:
        out[position] = np.stack([values[at] for at in window]).max(0)
    return np.moveaxis(out, (-2, -1), (0, 1))


def pad(x: Any, pads: Sequence[int], value: Any = 0, mode: str = "constant") -> Array:
    """Pad on codes: pads as in ONNX (all starts, then all ends; negative ones crop)."""
    x = np.asarray(x)
    pairs = list(zip(pads[: x.ndim], pads[x.ndim :], strict=True))
    x = x[
        tuple(slice(max(0, -s), n - max(0, -e)) for (s, e), n in zip(pairs, x.shape, strict=True))
    ]
    grow = [(max(0, s), max(0, e)) for s, e in pairs]
    if mode == "constant":
        return np.pad(x, grow, constant_values=value)
    return np.pad(x, grow, mode=mode)  # type: ignore[call-overload,no-any-return]


def quantized_pad(
    x: Any, sx: Any, zx: Any, sy: Any, zy: Any, pads: Sequence[int], value: float = 0.0
) -> Array:
    """DQ -> Pad(constant) -> Q in integers: the constant takes the input's parameters."""
    return rescale(pad(x, pads, quantize(F32(value), sx, zx)), sx, zx, sy, zy)


def softmax_table(sx: Any, length: int) -> Array:
    """QLinearSoftmax's exponentials for i = 0..255, 255 being the row's maximum -> f32 [256]."""
    scale = float(f32(sx))
    top = float(np.finfo(np.float32).max / F32(length))
    head = max(0.0, float(F32(math.log(top))) - 5.0) / scale
    return f32([math.exp((i - 255 + head) * scale) for i in range(256)])


def qlinear_softmax(
    x: Any, sx: Any, zx: Any, sy: Any, zy: Any, *, axis: int = -1, opset: int = 13
) -> Array:
    """QLinearSoftmax: u8 or s8 codes. Below opset 13 the axes from `axis` on form one row."""
    x = np.asarray(x)
    axis %= x.ndim
    if opset < 13:
        flat = x.reshape(*x.shape[:axis], -1)
        return qlinear_softmax(flat, sx, zx, sy, zy, axis=-1).reshape(x.shape)
    moved = np.moveaxis(x, axis, -1)
    rows = moved.reshape(-1, moved.shape[-1]).astype(np.int64)
    entries = softmax_table(sx, rows.shape[1])
    inverse = np.floor(F32(1) / f32(sy))
    out = np.zeros(rows.shape, np.int64)
    for i, row in enumerate(rows):
        e = entries[row - row.max() + 255]
        total = F32(0)
        for value in e:
            total = total + value
        quotient = e.astype(np.float64) * float(inverse) / float(total)
        out[i] = np.rint(quotient).astype(np.int64) + int(zy)
    codes = saturate(out, x.dtype).reshape(moved.shape)
    return np.moveaxis(codes, -1, axis)
