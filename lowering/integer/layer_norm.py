"""Normalizations over the last axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from intonnx.ir.ops.layer_norm import LayerNorm, RmsNorm
from intonnx.ir.types import Array

from ._fixed_normalization import Affine, FixedNormalization, constants
from ._normalization import centred, normalized, quantized
from .kernel import Context, Kernel, kernels


@kernels.register(LayerNorm, RmsNorm)
def layer_norm(op: LayerNorm | RmsNorm, context: Context) -> Kernel:
    """Exact sums, then float64; in `fixed` integers alone."""
    params = context.operand(0).params
    mean = isinstance(op, LayerNorm)
    if context.numerics == "fixed":
        return _fixed(op, context)

    def run(operands: Sequence[Any]) -> tuple[Array, ...]:
        given: list[Any] = [*operands, None]
        codes, scale, bias = given[:3]
        axes = tuple(range(op.axis % codes.ndim, codes.ndim))
        x = normalized(centred(codes, params), params, axes, op.epsilon, mean=mean)
        x *= scale.astype(np.float64)
        if bias is not None:
            x += bias.astype(np.float64)
        return (quantized(x, op.out),)

    return run


def _fixed(op: LayerNorm | RmsNorm, context: Context) -> Kernel:
    scale = constants(context.constant(1))[0]
    bias = constants(context.constant(2))[0] if context.has(2) else None
    params, mean = context.operand(0).params, isinstance(op, LayerNorm)
    normalize = FixedNormalization(params, op.out, op.epsilon, Affine(scale, bias), mean=mean)

    def run(operands: Sequence[Any]) -> tuple[Array, ...]:
        codes: Array = operands[0]
        return (normalize(codes, tuple(range(op.axis % codes.ndim, codes.ndim))),)

    return run
