"""Local response normalization."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from intonnx.ir.ops.lrn import LocalResponseNorm
from intonnx.ir.types import Array, QuantParams

from ._fixed_power import FixedResponse
from ._normalization import centred, quantized, squares
from .kernel import Context, Kernel, kernels


@kernels.register(LocalResponseNorm)
def lrn(op: LocalResponseNorm, context: Context) -> Kernel:
    """Exact sums of squares, then float64; in `fixed` integers alone."""
    params = context.operand(0).params
    if context.numerics == "fixed":
        return _fixed(op, params)
    scale = float(params.scalar_scale)
    factor = op.alpha / op.size * scale**2

    def run(operands: Sequence[Any]) -> tuple[Array, ...]:
        values = centred(operands[0], params)
        base = _window_sums(squares(values, params), op.size) * factor
        base += op.bias
        x: Array = values.astype(np.float64)
        x *= scale
        with np.errstate(all="ignore"):
            x /= np.power(base, op.beta, out=base)
        return (quantized(x, op.out),)

    return run


def _fixed(op: LocalResponseNorm, params: QuantParams) -> Kernel:
    response = FixedResponse(op, params)

    def run(operands: Sequence[Any]) -> tuple[Array, ...]:
        values = centred(operands[0], params)
        return (response(values, _window_sums(squares(values, params), op.size)),)

    return run


def _window_sums(x: Array, size: int) -> Array:
    """int64 sums over the channels around each one: differences of running sums."""
    channels = x.shape[1]
    running = np.zeros((x.shape[0], channels + 1, *x.shape[2:]), np.int64)
    np.cumsum(x, axis=1, out=running[:, 1:])
    places = np.arange(channels)
    first = np.maximum(places - (size - 1) // 2, 0)
    last = np.minimum(places + size // 2, channels - 1)
    sums: Array = running[:, last + 1] - running[:, first]
    return sums
