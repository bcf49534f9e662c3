"""The one home of multiplier arithmetic: from accumulators and codes to codes.

Sources: ONNX QuantizeLinear-21 and QLinearConv-10; measured on onnxruntime's CPU kernels; for the
numerics `fixed` see `fixed_point`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from intonnx.ir.errors import CompileFailure
from intonnx.ir.quantization import (
    all_codes,
    dequantize_array,
    expand_blocks,
    quantize_array,
)
from intonnx.ir.types import Array, QuantParams

from . import fixed_point
from .numerics import Numerics


def limits(params: QuantParams, rank: int) -> tuple[Array, Array, Array]:
    """Smallest and largest value before the zero point is added (float32), and the zero point.

    Each broadcasts over a tensor of this rank.
    """
    _, zero = params.along(rank)
    low = (params.qmin - zero).astype(np.float32)
    high = (params.qmax - zero).astype(np.float32)
    return low, high, zero


def round_to_codes(v: Array, params: QuantParams) -> Array:
    """Codes of scaled values: clamp in float32, round half to even, add the zero point.

    `v` is a float32 array (or float64) of any shape that the caller gives up: it is overwritten.
    NaN gives the smallest code.
    """
    low, high, zero = limits(params, v.ndim)
    # fmax and fmin prefer the number over NaN, so NaN takes the lower limit.
    np.fmax(v, low, out=v)
    np.fmin(v, high, out=v)
    np.rint(v, out=v)
    if params.storage.bits <= 16:
        # Sums stay below 2^24, so float32 adds the zero point exactly.
        v += zero.astype(np.float32)
        codes: Array = v.astype(params.storage.numpy)
        return codes
    wide: Array = v.astype(np.int64) + zero
    return wide.astype(params.storage.numpy)


def multiplier(x: QuantParams, out: QuantParams, rank: int) -> Array | None:
    """The float32 multiplier of an accumulator, its scale over that of the result.

    It broadcasts over a tensor of this rank. None where the literal arithmetic has to be followed:
    for blocks, which do not broadcast, and for a quotient that is infinite.
    """
    if x.block is not None or out.block is not None:
        return None
    with np.errstate(over="ignore", under="ignore"):
        k = np.asarray(x.along(rank)[0] / out.along(rank)[0], np.float32)
    return k if np.all(np.isfinite(k)) else None


def requantize_accumulator(
    x: QuantParams, out: QuantParams, rank: int, numerics: Numerics
) -> Callable[[Array], Array]:
    """A function from an accumulator (whole numbers of any numpy type) to codes.

    `qlinear`: f32(acc) * (x.scale / out.scale). `qdq`: (f32(acc) * x.scale) / out.scale.
    `fixed`: see `requantize_whole`.
    """
    if numerics == "fixed":
        return requantize_whole(x, out, rank)
    k = multiplier(x, out, rank)
    if numerics != "qlinear" or k is None:
        return lambda acc: quantize_array(dequantize_array(acc, x), out)
    factors, (_, zero) = k, x.along(rank)

    def run(acc: Array) -> Array:
        v = _real(acc, zero)
        with np.errstate(over="ignore", under="ignore"):
            v *= factors
        return round_to_codes(v, out)

    return run


def requantize_whole(x: QuantParams, out: QuantParams, rank: int) -> Callable[[Array], Array]:
    """A function from codes or accumulators to codes in integers alone: the numerics `fixed`.

    The multiplier is that of x.scale / out.scale, one for each pair of scales that meet. Raises
    CompileFailure when both sides have blocks, but other ones.
    """
    if x.block is not None or out.block is not None:
        return _requantize_blocks(x, out)
    (scale, zero), (out_scale, _) = x.along(rank), out.along(rank)
    scaling = fixed_point.Scaling(fixed_point.ratio(scale, out_scale), farthest(out))

    def run(codes: Array) -> Array:
        if np.any(zero):
            codes = codes.astype(np.int64) - zero
        return limited(scaling(codes), out)

    return run


def _requantize_blocks(x: QuantParams, out: QuantParams) -> Callable[[Array], Array]:
    """As `requantize_whole`: each block has its multiplier, whose places are known at run time."""
    blocked = x if x.block is not None else out
    same = (x.axis, x.block) == (out.axis, out.block)
    if not (same or x.per_tensor or out.per_tensor):
        raise CompileFailure("no fixed form: codes with blocks become codes with other blocks")
    factor = fixed_point.ratio(x.scale, out.scale)

    def run(codes: Array) -> Array:
        m, shift, zero, out_zero = (
            expand_blocks(array, blocked, codes.shape) if array.ndim else array
            for array in (factor.m, factor.shift, x.zero_point, out.zero_point)
        )
        scaling = fixed_point.Scaling(fixed_point.Multiplier(m, shift, factor.error), farthest(out))
        v = scaling(codes.astype(np.int64) - zero) + out_zero
        codes_out: Array = np.clip(v, out.qmin, out.qmax).astype(out.storage.numpy)
        return codes_out

    return run


def farthest(out: QuantParams) -> int:
    """The largest distance of a code from the zero point: what a result is limited to, or less."""
    zeros = out.zero_point
    return max(out.qmax - int(zeros.min()), int(zeros.max()) - out.qmin)


def limited(v: Array, out: QuantParams) -> Array:
    """Codes of whole quanta (int64, given up): limited, with the zero point added."""
    v += out.zero_along(v.ndim)
    np.clip(v, out.qmin, out.qmax, out=v)
    codes: Array = v.astype(out.storage.numpy)
    return codes


def dequantize_accumulator(x: QuantParams, rank: int) -> Callable[[Array], Array]:
    """A function from an accumulator to real values: f32(acc) * scale."""
    scale, zero = x.along(rank)

    def run(acc: Array) -> Array:
        v = _real(acc, zero)
        with np.errstate(over="ignore", under="ignore"):
            v *= scale
        return np.asarray(v, x.expressed.numpy)

    return run


def _real(acc: Array, zero: Array) -> Array:
    if np.any(zero):
        acc = acc.astype(np.int64) - zero
    real: Array = acc.astype(np.float32)
    return real


def requantize_table(x: QuantParams, out: QuantParams, numerics: Numerics = "qlinear") -> Array:
    """quantize(dequantize(code)) for every code of `x`, which is 8 or 16 bits wide and per tensor.

    Under `fixed` a multiplier takes their place. The entry of a code is at its unsigned bit
    pattern.
    """
    if numerics == "fixed":
        return requantize_whole(x, out, 1)(all_codes(x))
    return quantize_array(dequantize_array(all_codes(x), x), out)


def look_up(table: Array, codes: Array) -> Array:
    """The table's entries for codes, by their unsigned bit patterns; keeps the memory layout."""
    unsigned = codes.view(f"u{codes.dtype.itemsize}")
    # Indexing with an array is several times slower than `take` and `translate`, but these read
    # and write in C order: give them the axes in the order of the memory, so that channels-last
    # data stays so.
    order = sorted(range(unsigned.ndim), key=lambda axis: -unsigned.strides[axis])
    ordered = unsigned.transpose(order)
    if table.dtype.itemsize == unsigned.dtype.itemsize == 1:
        translated = bytearray(np.ascontiguousarray(ordered).data).translate(table.tobytes())
        found = np.frombuffer(translated, table.dtype).reshape(ordered.shape)
    else:
        found = np.asarray(table.take(ordered))
    return found.transpose(np.argsort(order))
