"""Between real values and codes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from intonnx.ir.ops.quantize import Dequantize, DynamicQuantize, Quantize, Requantize
from intonnx.ir.quantization import dequantize_array, expand, quantize_array
from intonnx.ir.types import Array, QuantParams
from intonnx.lowering.requantize import (
    look_up,
    requantize_accumulator,
    requantize_table,
    requantize_whole,
    round_to_codes,
)

from .kernel import Context, Kernel, kernels


@kernels.register(Quantize)
def quantize(op: Quantize, context: Context) -> Kernel:
    """A float32 division, then rounding."""

    def run(operands: Sequence[Any]) -> tuple[Array, ...]:
        x: Array = operands[0]
        if op.out.block is not None:
            return (quantize_array(x, op.out),)
        scale, _ = expand(op.out, x.shape)
        with np.errstate(over="ignore", invalid="ignore"):
            v = np.asarray(x.astype(np.float32, copy=False) / scale)
        return (round_to_codes(v, op.out),)

    return run


@kernels.register(Dequantize, elementwise=True)
def dequantize(op: Dequantize, context: Context) -> Kernel:
    """An integer subtraction and one float32 product; scales of operands are joined first."""
    params = context.operand(0).quant

    def run(operands: Sequence[Any]) -> tuple[Array, ...]:
        given: list[Any] = [*operands, None, None, None]
        x, scale, other, bias = given[:4]
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            if params is not None:
                real = dequantize_array(x, params)
            else:
                real = x.astype(np.float32)
                if other is not None and not op.in_turn:
                    scale = scale * other
                real *= scale
                if op.in_turn:
                    real *= other
            if bias is not None:
                real += bias
        return (real,)

    return run


@kernels.register(Requantize, elementwise=True)
def requantize(op: Requantize, context: Context) -> Kernel:
    """One multiplier for accumulators, a table for codes."""
    x = context.operand(0)
    convert = requantize_function(x.params, op.out, x.rank or 0, context)
    return lambda operands: (convert(operands[0]),)


def requantize_function(
    x: QuantParams, out: QuantParams, rank: int, context: Context
) -> Callable[[Array], Array]:
    """From arrays with parameters `x` to codes with parameters `out`, as the numerics say."""
    if x.storage.bits > 16:
        return requantize_accumulator(x, out, rank, context.numerics)
    if x.per_tensor and out.per_tensor:
        table = requantize_table(x, out, context.numerics)
        return lambda codes: look_up(table, codes)
    if context.numerics == "fixed":
        return requantize_whole(x, out, rank)
    return lambda codes: quantize_array(dequantize_array(codes, x), out)


@kernels.register(DynamicQuantize)
def dynamic_quantize(op: DynamicQuantize, context: Context) -> Kernel:
    """u8 with the range of the tensor, widened to hold zero; ONNX DynamicQuantizeLinear-11.

    As onnxruntime does it: NaN is no part of the range and gets the code 0; a zero point that is
    NaN (0 / 0 where the scale vanishes, inf / inf where it is infinite) is 255.
    """

    def run(operands: Sequence[Any]) -> tuple[Array, ...]:
        x: Array = operands[0]
        low, high = (f.reduce(x, axis=None, initial=np.float32(0)) for f in (np.fmin, np.fmax))
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            scale = np.float32(1) if low == high else np.float32((high - low) / np.float32(255))
            zero = np.rint(np.fmin(np.fmax(np.float32(0) - low / scale, 0), 255))
            if np.isnan(low / scale):
                zero = np.float32(255)
            v = np.asarray(x / scale)
        np.fmin(np.fmax(v, -zero, out=v), 255 - zero, out=v)
        codes = (np.rint(v, out=v) + zero).astype(np.uint8)
        return codes, np.asarray(scale, np.float32), np.asarray(zero, np.uint8)

    return run
