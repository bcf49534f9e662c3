"""Normalizations over spatial axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from intonnx.ir.ops.instance_norm import GroupNorm, InstanceNorm
from intonnx.ir.types import Array

from ._fixed_normalization import Affine, FixedNormalization, constants
from ._normalization import centred, normalized, quantized
from .kernel import Context, Kernel, kernels


@kernels.register(InstanceNorm)
def instance_norm(op: InstanceNorm, context: Context) -> Kernel:
    """Exact sums, then float64; in `fixed` integers alone."""
    params = context.operand(0).params
    if context.numerics == "fixed":
        normalize = _fixed(op, context)
        return lambda operands: (normalize(operands[0], tuple(range(2, operands[0].ndim))),)

    def run(operands: Sequence[Any]) -> tuple[Array, ...]:
        codes, scale, bias = operands
        axes = tuple(range(2, codes.ndim))
        x = normalized(centred(codes, params), params, axes, op.epsilon, mean=True)
        x *= _channels(scale, x)
        x += _channels(bias, x)
        return (quantized(x, op.out),)

    return run


@kernels.register(GroupNorm)
def group_norm(op: GroupNorm, context: Context) -> Kernel:
    """As an instance normalization of [N, groups, channels of a group, *spatial]."""
    params = context.operand(0).params
    normalize = _fixed(op, context) if context.numerics == "fixed" else None

    def run(operands: Sequence[Any]) -> tuple[Array, ...]:
        codes, scale, bias = operands
        n, channels, *spatial = codes.shape
        grouped = codes.reshape(n, op.groups, channels // op.groups, *spatial)
        axes = tuple(range(2, grouped.ndim))
        if normalize is not None:
            return (normalize(grouped, axes, codes.shape),)
        x = normalized(centred(grouped, params), params, axes, op.epsilon, mean=True)
        x = x.reshape(codes.shape)
        x *= _channels(scale, x)
        x += _channels(bias, x)
        return (quantized(x, op.out),)

    return run


def _fixed(op: InstanceNorm | GroupNorm, context: Context) -> FixedNormalization:
    x = context.operand(0)
    shape = (-1, *(1,) * ((x.rank or 2) - 2))
    scale, bias = (array.reshape(shape) for array in constants(*context.constants[1:3]))
    return FixedNormalization(x.params, op.out, op.epsilon, Affine(scale, bias), mean=True)


def _channels(factors: Array, x: Array) -> Array:
    """[C] in float64, shaped to broadcast over [N, C, *spatial]."""
    return factors.astype(np.float64).reshape(-1, *(1,) * (x.ndim - 2))
