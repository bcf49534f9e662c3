"""Element-wise kernels on two operands: a table of every pair of codes, or literal arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import lru_cache, partial
from typing import Any

import numpy as np

from intonnx.ir.quantization import all_codes, dequantize_array
from intonnx.ir.types import Array, QuantParams, TensorType, static_shape
from intonnx.lowering.requantize import look_up, round_to_codes

from .kernel import Context, Kernel

Function = Callable[[Array, Array], Any]
"""An element-wise function of real values that broadcast, such as np.add."""
CodesFunction = Callable[[Array, Array], Array]


def literal_kernel(function: Function, out: QuantParams, context: Context) -> Kernel:
    """Dequantize, apply the float function, quantize: onnxruntime without optimization.

    Two 8-bit operands take a table of the 65,536 results.
    """
    kinds = context.operand(0), context.operand(1)
    if has_table(kinds[0]) and has_table(kinds[1]):
        params = kinds[0].params, kinds[1].params
        return shared_pair_kernel(_literal_table, (function, *params, out), context)
    return real_kernel(partial(_literal_codes, function, out), context)


def _literal_codes(function: Function, out: QuantParams, a: Array, b: Array) -> Array:
    with np.errstate(all="ignore"):
        v = np.array(function(a, b), np.float32)
        v /= out.scale
    return round_to_codes(v, out)


def _literal_table(function: Function, a: QuantParams, b: QuantParams, out: QuantParams) -> Array:
    rows, columns = (dequantize_array(all_codes(params), params) for params in (a, b))
    return _literal_codes(function, out, rows[:, None], columns)


def real_kernel(function: CodesFunction, context: Context) -> Kernel:
    """Apply a function of the real values of both operands; by a table of its results for 8 bits.

    A table has 65,536 entries for two operands and 256 for one beside a scalar.
    """
    kinds = context.operand(0), context.operand(1)
    tables = [_real_values(kind) if has_table(kind) else None for kind in kinds]
    scalars = [_real_scalar(kind, context.constant(i)) for i, kind in enumerate(kinds)]
    a, b = tables
    if a is not None and b is not None:
        return pair_kernel(function(a[:, None], b), context)
    if a is not None and scalars[1] is not None:
        return row_kernel(function(a, scalars[1]), 0)
    if b is not None and scalars[0] is not None:
        return row_kernel(function(scalars[0], b), 1)
    real_a, real_b = (_reals(kind, context.constant(i)) for i, kind in enumerate(kinds))
    return lambda operands: (np.asarray(function(real_a(operands[0]), real_b(operands[1]))),)


def has_table(kind: TensorType) -> bool:
    """Whether a value is quantized with one scale and at most 8 bits."""
    return kind.quant is not None and kind.quant.per_tensor and kind.dtype.bits <= 8


def pair_kernel(table: Array, context: Context) -> Kernel:
    """Look up pairs of 8-bit codes that broadcast in a table [256, 256]."""
    find = _pairs(partial(_flat, table), context)
    return lambda operands: (find(operands[0], operands[1]),)


def shared_pair_kernel(
    make: Callable[..., Array], arguments: tuple[Hashable, ...], context: Context
) -> Kernel:
    """As `pair_kernel` with the table `make(*arguments)`; kernels of equal arguments share it."""
    find = _pairs(partial(_shared_table, make, arguments), context)
    return lambda operands: (find(operands[0], operands[1]),)


@lru_cache(maxsize=256)
def _shared_table(
    make: Callable[..., Array], arguments: tuple[Hashable, ...], transposed: bool
) -> Array:
    table = _flat(make(*arguments), transposed)
    table.setflags(write=False)
    return table


def _flat(table: Array, transposed: bool) -> Array:
    """A table [256, 256], or its transpose, as [65536]."""
    return np.ascontiguousarray(table.T if transposed else table).reshape(-1)


def row_kernel(row: Array, data: int) -> Kernel:
    """Look up the codes of one operand in a table [256]: the other one has one element."""
    find = _one_constant(row, data)
    return lambda operands: (find(operands[0], operands[1]),)


def _pairs(table: Callable[[bool], Array], context: Context) -> CodesFunction:
    a, b = context.constant(0), context.constant(1)
    if b is not None and b.size == 1:
        return _one_constant(table(False)[int(_bits(b).reshape(-1)[0]) :: 256], 0)
    if a is not None and a.size == 1:
        start = 256 * int(_bits(a).reshape(-1)[0])
        return _one_constant(table(False)[start : start + 256], 1)
    high = _high_operand(context)
    flat = table(high == 1)
    constant = context.constant(high)
    prepared = None if constant is None else _shifted(constant)

    def run(a: Array, b: Array) -> Array:
        above, below = (a, b) if high == 0 else (b, a)
        shifted = _shifted(above) if prepared is None else prepared
        return look_up(flat, np.asarray(np.bitwise_or(shifted, _bits(below))))

    return run


def _one_constant(row: Array, data: int) -> CodesFunction:
    row = np.array(row)  # a copy, so that the table need not stay

    def run(a: Array, b: Array) -> Array:
        found = look_up(row, b if data else a)
        return found.reshape(np.broadcast_shapes(a.shape, b.shape))

    return run


def _high_operand(context: Context) -> int:
    """The operand whose codes become the upper half of the index: constant, else the smaller."""
    constant = [context.constant(i) is not None for i in (0, 1)]
    if any(constant):
        return constant.index(True)
    shapes = [static_shape(context.operand(i).shape) for i in (0, 1)]
    sizes = [0 if shape is None else int(np.prod(shape)) for shape in shapes]
    return int(sizes[1] < sizes[0])


def _shifted(codes: Array) -> Array:
    return np.asarray(np.left_shift(_bits(codes), 8, dtype=np.uint16))


def _bits(codes: Array) -> Array:
    bits: Array = codes.view(np.uint8)
    return bits


def _reals(kind: TensorType, constant: Array | None) -> Callable[[Array], Array]:
    """A function from an operand to its real values in the expressed type."""
    if kind.quant is None:
        return lambda x: x
    params = kind.quant
    if constant is not None:
        known = dequantize_array(constant, params)
        return lambda codes: known
    if has_table(kind):
        table = _real_values(kind)
        return lambda codes: look_up(table, codes)
    return lambda codes: dequantize_array(codes, params)


def _real_values(kind: TensorType) -> Array:
    return dequantize_array(all_codes(kind.params), kind.params)


def _real_scalar(kind: TensorType, constant: Array | None) -> Array | None:
    """The real value of a constant with one element, rank 0."""
    if constant is None or constant.size != 1:
        return None
    real = constant if kind.quant is None else dequantize_array(constant, kind.quant)
    return real.reshape(())
