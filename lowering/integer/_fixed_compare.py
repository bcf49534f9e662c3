"""Comparisons of real values in integers alone, for the numerics `fixed`.

Codes of up to 16 bits, and constants, become whole numbers in the order of their real values, which
are rounded to float32 at compile time. Wider codes and codes with scales along an axis are compared
as exact products with their scales.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from intonnx.ir.errors import CompileFailure
from intonnx.ir.quantization import all_codes, dequantize_array
from intonnx.ir.types import Array, TensorType
from intonnx.lowering.requantize import look_up

from ._fixed_binary import operand_of
from .kernel import Context, Kernel

Relation = Callable[[Array, Array], Any]
"""np.less and its siblings."""
_EQUAL = np.zeros((), np.int64)


def fixed_compare(relation: Relation, context: Context) -> Kernel:
    """A kernel for two operands. Raises CompileFailure for real values that are not constant."""
    kinds = context.operand(0), context.operand(1)
    keys = [_keys(kind, context.constant(i)) for i, kind in enumerate(kinds)]
    a, b = keys
    if a is not None and b is not None:
        return lambda operands: (np.asarray(relation(a(operands[0]), b(operands[1]))),)
    order = _exact_order(context)
    return lambda operands: (np.asarray(relation(order(operands[0], operands[1]), _EQUAL)),)


def _keys(kind: TensorType, constant: Array | None) -> Callable[[Array], Array] | None:
    """A function from an operand to whole numbers in the order of its real values."""
    if constant is not None:
        real = constant if kind.quant is None else dequantize_array(constant, kind.quant)
        if np.isnan(real).any():
            raise CompileFailure("no fixed form: a constant operand is not a number")
        known = _ordered(real)
        return lambda operand: known
    if kind.quant is None or not kind.quant.per_tensor or kind.dtype.bits > 16:
        return None
    table = _ordered(dequantize_array(all_codes(kind.quant), kind.quant))
    return lambda codes: look_up(table, codes)


def _ordered(real: Array) -> Array:
    """The bits of float32 as int32 whose order is that of the numbers; -0 is 0."""
    bits = (real.astype(np.float32) + np.float32(0)).view(np.int32)
    return np.asarray(bits ^ ((bits >> 31) & np.int32(0x7FFFFFFF)))


def _exact_order(context: Context) -> Callable[[Array, Array], Array]:
    """-1, 0 or 1 for two operands: below, equal, above."""
    left, right = (
        operand_of(kind, context.constant(i))
        for i, kind in enumerate((context.operand(0), context.operand(1)))
    )
    (m_a, e_a), (m_b, e_b) = _mantissas(left.scale), _mantissas(right.scale)
    # Products are below 2^58: what is shifted out by more is 0 or -1.
    apart = np.clip(e_a - e_b, -62, 62)
    down_a, down_b = np.maximum(-apart, 0), np.maximum(apart, 0)

    def order(x: Array, y: Array) -> Array:
        p, q = np.asarray(left.whole(x) * m_a), np.asarray(right.whole(y) * m_b)
        high_p, high_q = p >> down_a, q >> down_b
        rest_p, rest_q = p - (high_p << down_a), q - (high_q << down_b)
        sign: Array = np.sign(high_p - high_q)
        return np.where(sign != 0, sign, np.sign(rest_p) - np.sign(rest_q))

    return order


def _mantissas(scale: Array) -> tuple[Array, Array]:
    """Odd whole numbers and exponents of two of an array of floats as `Fraction`s, int64."""
    pairs = [_mantissa(factor.numerator, factor.denominator) for factor in scale.ravel()]
    found = np.array(pairs, np.int64).reshape(*scale.shape, 2)
    return found[..., 0], found[..., 1]


def _mantissa(n: int, d: int) -> tuple[int, int]:
    zeros = (n & -n).bit_length() - 1
    return n >> zeros, zeros - (d.bit_length() - 1)
