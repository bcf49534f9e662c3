"""Matrix products: exact sums through the BLAS that the bounds allow."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from intonnx.ir.ops.dense import BatchMatMul, Dense
from intonnx.ir.types import Array, TensorType

from .epilogue import Epilogue, epilogue
from .exact import (
    INT32_LIMIT,
    accumulator_dtype,
    exact_product,
    largest_magnitude,
    product_of_unknown,
)
from .kernel import Context, Kernel, kernels
from .packed import CodeRange, PackedWeights
from .products import multiply_rows

_BLOCK_ELEMENTS = 1 << 16
"""Sums of a block that is finished at once."""

Rows = Callable[[np.dtype[Any]], Array]
"""The centred left side [..., M, K] in a float type."""


@kernels.register(Dense, BatchMatMul, channel_axis=-1)
def matrix_product(op: Dense | BatchMatMul, context: Context) -> Kernel:
    """The right side is packed at compile time when it and its zero point are constant."""
    after = epilogue(context, -1)
    fixed = _fixed_product(context, after)
    if fixed is not None:
        return fixed
    a, b = context.operand(0), context.operand(1)
    multiply = _product(a, b, context)

    def run(operands: Sequence[Any]) -> tuple[Array, ...]:
        given: list[Any] = [*operands, None, None, None]
        left, right, bias, a_zero, b_zero = given[:5]
        if a.quant is not None:
            a_zero = a.quant.zero_point

        def rows(dtype: np.dtype[Any]) -> Array:
            return _centred(left if left.ndim > 1 else left[None], _column(a_zero), dtype)

        sums = multiply(rows, right, b_zero)
        # A vector on the left has no rows, one on the right no columns.
        if right.ndim == 1:
            sums = sums[..., 0]
        if left.ndim == 1:
            sums = sums[..., 0, :] if right.ndim > 1 else sums[..., 0]
        if bias is not None:
            sums += bias
        return (_finished(sums, after) if context.followers else sums,)

    return run


def _finished(sums: Array, after: Epilogue) -> Array:
    """The results of the epilogue for sums [..., N]."""
    dtype, channels = sums.dtype, sums.shape[-1] if sums.ndim else 1
    out = np.empty(sums.shape, after.dtype(dtype))
    if out.size:
        rows, target = np.ascontiguousarray(sums).reshape(-1, channels), out.reshape(-1, channels)
        count = max(1, _BLOCK_ELEMENTS // channels)
        with np.errstate(over="ignore", under="ignore"):
            for start in range(0, len(rows), count):
                block = slice(start, start + count)
                after.apply(rows[block], target[block], dtype)
    return out


def _fixed_product(context: Context, after: Epilogue) -> Kernel | None:
    """The kernel for one constant matrix and a bias of columns, in blocks of rows.

    None for other operands: vectors, several matrices, zero points of rows or at run time.
    """
    a, matrix, bias = context.operand(0), context.constant(1), context.constant(2)
    known = matrix is not None and matrix.ndim == 2 and (bias is not None or not context.has(2))
    if not known or a.quant is None or (a.rank or 0) < 2 or context.operand(1).quant is None:
        return None
    assert matrix is not None
    if bias is not None:
        if bias.ndim > 1 and any(size > 1 for size in bias.shape[:-1]):
            return None
        bias = np.broadcast_to(bias.reshape(-1).astype(np.int64), (1, matrix.shape[1]))
    centred = _centred(matrix, context.operand(1).params.zero_point, np.dtype(np.int64))
    zero = a.params.scalar_zero_point
    codes = CodeRange(a.params.qmin, a.params.qmax, zero)
    weights = PackedWeights(centred[None], bias, codes, rounded=after.rounded)
    dtype = accumulator_dtype(weights.bound)

    def run(operands: Sequence[Any]) -> tuple[Array, ...]:
        x: Array = operands[0]
        out = np.empty((*x.shape[:-1], matrix.shape[1]), after.dtype(dtype))
        if out.size:
            rows, results = x.reshape(-1, x.shape[-1]), out.reshape(-1, matrix.shape[1])
            with np.errstate(over="ignore", under="ignore"):
                multiply_rows(weights, rows, zero, results, after, dtype)
        return (out,)

    return run


def _product(
    a: TensorType, b: TensorType, context: Context
) -> Callable[[Rows, Array, Array | None], Array]:
    """From the left side, the right side and its zero point to the sums [..., M, N]."""
    extra = 0
    if context.has(2):
        bias = context.constant(2)
        extra = INT32_LIMIT if bias is None else int(np.abs(bias.astype(np.int64)).max(initial=0))
    matrix = context.constant(1)
    zero = b.quant.zero_point if b.quant is not None else context.constant(4)
    if matrix is not None and (zero is not None or not context.has(4)):
        centred = _centred(_matrix(matrix), zero, np.dtype(np.int64))
        product, dtype = exact_product(centred, _largest(a), extra)
        return lambda rows, *_: _flat(product, rows(dtype), centred.ndim)

    def run(rows: Rows, right: Array, b_zero: Array | None) -> Array:
        right = _matrix(right)
        product, dtype = product_of_unknown(right.shape[-2], _largest(a), _largest(b), extra)
        centred = _centred(right, zero if b.quant is not None else b_zero, dtype)
        return _flat(lambda x: product(x, centred), rows(dtype), centred.ndim)

    return run


def _flat(product: Callable[[Array], Array], rows: Array, rank: int) -> Array:
    """The product; with a single matrix on the right all rows are multiplied at once."""
    if rank > 2:
        return product(rows)
    sums = product(rows.reshape(math.prod(rows.shape[:-1]), rows.shape[-1]))
    return sums.reshape(*rows.shape[:-1], sums.shape[-1])


def _centred(codes: Array, zero: Array | None, dtype: np.dtype[Any]) -> Array:
    """A new array of codes less their zero points, which broadcast."""
    centred: Array = codes.astype(dtype)
    if zero is not None and np.any(zero):
        centred -= zero.astype(dtype)
    return centred


def _column(zero: Array | None) -> Array | None:
    """Zero points of rows as a column: ONNX gives [M] or [..., M, 1]."""
    return zero[:, None] if zero is not None and zero.ndim == 1 and zero.size > 1 else zero


def _matrix(b: Array) -> Array:
    """The right side with an axis of columns."""
    return b[:, None] if b.ndim == 1 else b


def _largest(kind: TensorType) -> int:
    """The largest |code - zero point| of a type; any zero point may come with plain integers."""
    if kind.quant is None:
        return kind.dtype.high - kind.dtype.low
    params, zeros = kind.params, kind.params.zero_point
    return max(
        largest_magnitude(params.qmin, params.qmax, int(zero))
        for zero in (zeros.min(), zeros.max())
    )
