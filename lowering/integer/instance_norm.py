"""Normalizations over spatial axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from intonnx.ir.ops.instance_norm import GroupNorm, InstanceNorm
from intonnx.ir.types import Array

from ._normalization import centred, normalized, quantized
from .kernel import Context, Kernel, kernels


@kernels.register(InstanceNorm)
def instance_norm(op: InstanceNorm, context: Context) -> Kernel:
    """Exact sums, then float64; the same under all numerics."""
    params = context.operand(0).params

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

    def run(operands: Sequence[Any]) -> tuple[Array, ...]:
        codes, scale, bias = operands
        n, channels, *spatial = codes.shape
        grouped = codes.reshape(n, op.groups, channels // op.groups, *spatial)
        axes = tuple(range(2, grouped.ndim))
        x = normalized(centred(grouped, params), params, axes, op.epsilon, mean=True)
        x = x.reshape(codes.shape)
        x *= _channels(scale, x)
        x += _channels(bias, x)
        return (quantized(x, op.out),)

    return run


def _channels(factors: Array, x: Array) -> Array:
    """[C] in float64, shaped to broadcast over [N, C, *spatial]."""
    return factors.astype(np.float64).reshape(-1, *(1,) * (x.ndim - 2))
