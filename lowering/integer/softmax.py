"""Softmax over rows of codes."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from intonnx.ir.float32 import EXP_POLYNOMIAL, fused_polynomial, power_of_two, split_exponent
from intonnx.ir.ops.softmax import Softmax
from intonnx.ir.quantization import all_codes, dequantize_array, quantize_array
from intonnx.ir.types import Array, DType, QuantParams

from ._fixed_softmax import Rows, fixed_rows
from .kernel import Context, Kernel, kernels

_LANES = 8
_BLOCK_ELEMENTS = 1 << 15
"""Rows go through all steps in blocks of about this many elements, which stay in the cache."""


@kernels.register(Softmax)
def softmax(op: Softmax, context: Context) -> Kernel:
    """QLinearSoftmax where onnxruntime has a kernel and the numerics ask for it, else literal."""
    params = context.operand(0).params
    kernel_exists = params.storage in (DType.U8, DType.I8) and op.out.storage is params.storage
    if context.numerics == "fixed":
        rows = fixed_rows(params, op.out, op.logarithm)
    elif context.numerics == "qlinear" and kernel_exists and not op.logarithm:
        rows = _qlinear_rows(params, op.out)
    else:
        rows = _literal_rows(params, op.out, op.logarithm)

    def run(operands: Sequence[Any]) -> tuple[Array, ...]:
        x: Array = operands[0]
        if x.size == 0:
            return (x.astype(op.out.storage.numpy),)
        if op.flattened:
            return (by_blocks(x.reshape(math.prod(x.shape[: op.axis]), -1)).reshape(x.shape),)
        moved = np.moveaxis(x, op.axis, -1)
        found = by_blocks(moved.reshape(-1, moved.shape[-1])).reshape(moved.shape)
        return (np.moveaxis(found, -1, op.axis),)

    def by_blocks(codes: Array) -> Array:
        found = np.empty(codes.shape, op.out.storage.numpy)
        height = max(1, _BLOCK_ELEMENTS // codes.shape[-1])
        for first in range(0, len(codes), height):
            found[first : first + height] = rows(codes[first : first + height])
        return found

    return run


def _qlinear_rows(x: QuantParams, out: QuantParams) -> Rows:
    """The arithmetic of com.microsoft QLinearSoftmax, measured on onnxruntime 1.32."""
    with np.errstate(over="ignore"):
        inverse = float(np.floor(np.float32(1) / out.scalar_scale))
    zero = out.scalar_zero_point

    def run(codes: Array) -> Array:
        # From 0 to 255, so the difference of the bit patterns modulo 256 is right for s8 too.
        below_maximum = (codes.max(axis=-1, keepdims=True) - codes).view(np.uint8)
        e = _exponentials(float(x.scalar_scale), codes.shape[-1]).take(below_maximum)
        total = _sequential_sum(e, axis=-1)[..., np.newaxis]
        quotient = np.multiply(e, inverse, dtype=np.float64)
        quotient /= total
        shifted = np.rint(quotient, out=quotient)
        shifted += zero
        limited: Array = np.clip(shifted, out.qmin, out.qmax, out=shifted)
        return limited.astype(out.storage.numpy)

    return run


@functools.lru_cache(maxsize=64)
def _exponentials(scale: float, length: int) -> Array:
    """exp((h - n) * scale) for codes n = 0..255 below the row's maximum -> float32 [256].

    h lifts all of them as far as the sum of `length` of them stays finite.
    """
    top = float(np.finfo(np.float32).max / np.float32(length))
    lift = max(0.0, float(np.float32(math.log(top))) - 5.0) / scale
    return np.asarray([math.exp((lift - n) * scale) for n in range(256)], np.float32)


def _sequential_sum(values: Array, axis: int) -> Array:
    """The sum of float32 values one after the other; `sum` would add them pairwise."""
    total: Array = np.add.accumulate(values, axis=axis, dtype=np.float32).take(-1, axis=axis)
    return total


def _literal_rows(x: QuantParams, out: QuantParams, logarithm: bool) -> Rows:
    """Dequantize, Softmax in float32, quantize, as onnxruntime does on a CPU with AVX2.

    The order of its sum is that of eight lanes; CPUs with wider ones can differ in the last bit.
    """
    reals = _differences(x)

    def run(codes: Array) -> Array:
        shifted, e = reals(codes)
        total = _lane_sum(e)[..., np.newaxis]
        if logarithm:
            # The C library's logarithm is correctly rounded nearly always.
            return quantize_array(
                shifted - np.log(total.astype(np.float64)).astype(np.float32), out
            )
        return quantize_array(e * (np.float32(1) / total), out)

    return run


def _differences(x: QuantParams) -> Callable[[Array], tuple[Array, Array]]:
    """A function from rows of codes to real values below the row's maximum, and their exponentials.

    For 8-bit codes both are tables by the maximum's and the value's code.
    """
    if x.storage.bits > 8:

        def compute(codes: Array) -> tuple[Array, Array]:
            real = dequantize_array(codes, x).astype(np.float32)
            shifted = real - real.max(axis=-1, keepdims=True)
            return shifted, _row_exp(shifted)

        return compute
    real = dequantize_array(all_codes(x), x).astype(np.float32)
    table = real - real[:, np.newaxis]
    exponentials = _row_exp(table)

    def take(codes: Array) -> tuple[Array, Array]:
        highest = codes.max(axis=-1, keepdims=True).view(np.uint8).astype(np.intp)
        index = highest * 256 + codes.view(np.uint8)
        return table.take(index), exponentials.take(index)

    return take


def _row_exp(shifted: Array) -> Array:
    """Exponentials of float32 values of at most 0. MLAS, MlasComputeSumExp."""
    r, m = split_exponent(np.maximum(shifted, np.float32(-88.3762626647949)))
    return fused_polynomial(r, [*EXP_POLYNOMIAL, 1.0]) * power_of_two(m)


def _lane_sum(e: Array) -> Array:
    """Sums of the rows of [R, D]: eight running sums take turns, then join in pairs."""
    rows, length = e.shape
    padded = np.zeros((rows, -(-length // _LANES) * _LANES), np.float32)
    padded[:, :length] = e
    lanes = _sequential_sum(padded.reshape(rows, -1, _LANES), axis=1)
    pairs = lanes[:, 0::2] + lanes[:, 1::2]
    low, high = pairs[:, 0] + pairs[:, 1], pairs[:, 2] + pairs[:, 3]
    total: Array = high + low
    return total
