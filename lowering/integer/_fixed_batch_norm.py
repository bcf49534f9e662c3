"""Batch normalization in integers alone, for the numerics `fixed`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np

from intonnx.ir.errors import CompileFailure
from intonnx.ir.ops.batch_norm import BatchNorm
from intonnx.ir.types import Array, QuantParams
from intonnx.lowering import fixed_point
from intonnx.lowering.reductions import largest_code

from ._fixed_binary import Operand, sums
from ._fixed_normalization import constants

_ROOT_BITS = 64


def fixed_batch_norm(
    op: BatchNorm, x: QuantParams, statistics: Sequence[Array | None]
) -> Callable[[Array], Array]:
    """From codes [N, C, ...] to codes: a multiplier and an addend for each channel, one rounding.

    x * factor + (bias - mean * factor) with the factor scale / sqrt(variance + epsilon).
    """
    if x.axis not in (None, 1):
        raise CompileFailure(f"no fixed form: scales along axis {x.axis}")
    scale, bias, mean, variance = (fixed_point.fractions(a) for a in constants(*statistics))
    epsilon = Fraction(float(np.float32(op.epsilon)))
    factor = np.asarray([s / _root(v + epsilon) for s, v in zip(scale, variance, strict=True)])
    addend = bias - mean * factor
    x_scale, zero = x.along(2)
    products = fixed_point.fractions(np.broadcast_to(x_scale, (1, scale.size))) * factor
    by_channel = Operand(products, lambda whole: whole, largest_code(x), False)
    one = Operand(addend[np.newaxis], lambda whole: whole, 1, True)

    def run(codes: Array) -> Array:
        # The channels come last, so that their multipliers broadcast.
        whole = np.moveaxis(codes, 1, -1).astype(np.int64)
        whole -= np.ravel(zero) if zero.size > 1 else zero.reshape(())
        return np.moveaxis(compute(whole, np.ones((), np.int64)), -1, 1)

    compute = sums(1)(by_channel, one, op.out)
    return run


def _root(x: Fraction) -> Fraction:
    """The square root, right to 64 binary digits after the point."""
    if x <= 0:
        raise CompileFailure("no fixed form: the variance of a channel is not above 0")
    digits = _ROOT_BITS + x.denominator.bit_length()
    return Fraction(math.isqrt((x.numerator << 2 * digits) // x.denominator), 1 << digits)
