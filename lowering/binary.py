"""Which arithmetic an element-wise operator on two operands follows, and that arithmetic.

Two kinds: literal, which dequantizes, applies the float operator and quantizes; and that of
onnxruntime's QLinearAdd and QLinearMul kernels. The integer kernels and the ONNX emitters ask the
same question here, so that both lowerings of a graph agree to the last bit.
"""

from __future__ import annotations

import itertools

import numpy as np

from intonnx.ir.float32 import fused_multiply_add
from intonnx.ir.quantization import all_codes
from intonnx.ir.types import Array, Dim, DType, QuantParams, TensorType

_LARGEST_SUM = 1 << 20
"""Above it a float32 step is so coarse that sums of raw codes leave the literal result."""
_LARGEST_PRODUCT = 1 << 30
"""Well below 2^31, where the kernel's conversion to int32 turns large values into small ones."""


def same_8_bit(a: TensorType, b: TensorType, out: QuantParams) -> bool:
    """Whether QLinearAdd and QLinearMul take these types: one of u8 and s8, one f32 scale each."""
    if a.quant is None or b.quant is None:
        return False
    every = (a.quant, b.quant, out)
    return (
        out.storage in (DType.U8, DType.I8)
        and all(p.storage is out.storage and p.per_tensor for p in every)
        and all(p.expressed is DType.F32 for p in every)
    )


def qlinear_add_fits(a: TensorType, b: TensorType, out: QuantParams) -> bool:
    """Whether QLinearAdd computes this sum within one step of the literal result.

    It adds products of raw codes before the zero points are taken off, which cancels too much when
    a scale is thousands of times that of the result.
    """
    if not same_8_bit(a, b, out):
        return False
    with np.errstate(over="ignore", under="ignore"):
        ratios = np.stack([a.params.scale, b.params.scale]) / out.scale
        return bool(255 * np.sum(ratios, dtype=np.float64) < _LARGEST_SUM)


def qlinear_multiply_fits(a: TensorType, b: TensorType, out: QuantParams) -> bool:
    """Whether QLinearMul computes this product within one step of the literal result.

    It multiplies the scales in float32 first, which must neither overflow nor lose digits, and
    large values must not leave int32.
    """
    if not same_8_bit(a, b, out):
        return False
    with np.errstate(over="ignore", under="ignore"):
        product = a.params.scale * b.params.scale
        largest = 255.0 * 255.0 * float(product / out.scale)
    return bool(product >= np.finfo(np.float32).tiny and largest < _LARGEST_PRODUCT)


def qlinear_add_table(a: QuantParams, b: QuantParams, out: QuantParams, swapped: bool) -> Array:
    """QLinearAdd of every pair of codes, [256, 256] by the unsigned bit patterns of `a` and `b`.

    F = zy - fma(ra, za, rb * zb), fma(a, ra, fma(b, rb, F)) for the scale ratios ra and rb; with
    `swapped` (see `swaps_operands`) the operands change places, which changes the last bit.
    """
    if swapped:
        return qlinear_add_table(b, a, out, False).T
    ratio_a, ratio_b = a.scale / out.scale, b.scale / out.scale
    zero_a, zero_b, zero = (p.zero_point.astype(np.float32) for p in (a, b, out))
    fixed = zero - fused_multiply_add(ratio_a, zero_a, ratio_b * zero_b)
    inner = fused_multiply_add(_codes(b), ratio_b, np.asarray(fixed))
    return _saturated(fused_multiply_add(_codes(a)[:, None], ratio_a, inner), out)


def qlinear_multiply_table(a: QuantParams, b: QuantParams, out: QuantParams) -> Array:
    """QLinearMul of every pair of codes, [256, 256] by the unsigned bit patterns of `a` and `b`.

    f32((a - za) * (b - zb)) * ((sa * sb) / sy) + f32(zy), rounded after the zero point is added.
    """
    ratio = (a.scale * b.scale) / out.scale
    left, right = (_codes(p) - p.zero_point.astype(np.float32) for p in (a, b))
    product = np.multiply.outer(left, right)  # below 2^16, so exact
    return _saturated(product * ratio + out.zero_point.astype(np.float32), out)


def one_exponent(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    """Whether onnxruntime's Pow sees one exponent of shape `b` beside a row of `a`.

    It does when `b`, and not `a`, is the scalar along the innermost axis.
    """
    return not swaps_operands(a, b) and swaps_operands(b, a)


def swaps_operands(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    """Whether QLinearAdd takes `b` for `a`: when `a` is the scalar along the innermost axis.

    Axes on which both have one element do not count, and only as many axes are looked at as the
    operand of lower rank has, but at least one: without any that counts, `a` is a scalar.
    Measured on onnxruntime 1.32.
    """
    swap = known_swap(a, b)
    assert swap is not None
    return swap


def known_swap(a: tuple[Dim, ...] | None, b: tuple[Dim, ...] | None) -> bool | None:
    """What `swaps_operands` will say, where the sizes that are known decide it; else None."""
    if a is None or b is None:
        return None
    count = max(1, min(len(a), len(b)))
    pairs = zip(reversed((1, *a)), reversed((1, *b)), strict=False)
    for m, n in itertools.islice(pairs, count):
        if isinstance(m, int) and m > 1:
            return False
        if isinstance(m, str) or isinstance(n, str):
            return None
        if n > 1:
            return True
    return True


def _codes(params: QuantParams) -> Array:
    return all_codes(params).astype(np.float32)


def _saturated(values: Array, out: QuantParams) -> Array:
    codes: Array = np.clip(np.rint(values), out.qmin, out.qmax).astype(out.storage.numpy)
    return codes
