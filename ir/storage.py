"""Operators on codes that have moved from s8 to u8: 128 is added to codes and zero points."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from intonnx.ir.op import Op
from intonnx.ir.ops import (
    add,
    argmax,
    avg_pool,
    batch_norm,
    blocked_dense,
    clip,
    compare,
    concatenate,
    conv,
    conv_transpose,
    cumsum,
    dense,
    depth_to_space,
    divide,
    einsum,
    expand,
    gather,
    gather_elements,
    global_avg_pool,
    grid_sample,
    identity,
    instance_norm,
    layer_norm,
    lrn,
    lut,
    max_pool,
    minimum,
    multiply,
    pad,
    power,
    prelu,
    quantize,
    reduce,
    reshape,
    resize,
    scatter_nd,
    slice,  # noqa: A004
    softmax,
    split,
    storage_cast,
    top_k,
    transpose,
    where,
)
from intonnx.ir.types import Array, DType, QuantParams, TensorType

OFFSET = 128

_FAMILIES = (
    add, argmax, avg_pool, batch_norm, blocked_dense, clip, compare, concatenate, conv,
    conv_transpose, cumsum, dense, depth_to_space, divide, einsum, expand, gather, gather_elements,
    global_avg_pool, grid_sample, identity, instance_norm, layer_norm, lrn, lut, max_pool, minimum,
    multiply, pad, power, prelu, quantize, reduce, reshape, resize, scatter_nd, slice, softmax,
    split, storage_cast, top_k, transpose, where,
)  # fmt: skip
MOVABLE: frozenset[str] = frozenset(family.__name__ for family in _FAMILIES)
"""Modules whose operators see only real values, or parameters that say what a code means."""

WEIGHTED = (
    conv.Conv, conv_transpose.ConvTranspose, dense.MatrixProduct, blocked_dense.BlockedDense,
)  # fmt: skip
"""Operators whose operand 1, when it is constant, is stored as its kernel wants it."""


@dataclass(frozen=True)
class Moved:
    """An operator on moved codes, and its table in their order when it has one."""

    op: Op
    table: Array | None = None


def is_signed(kind: TensorType | None) -> bool:
    """Whether a value is quantized in s8."""
    return kind is not None and kind.quant is not None and kind.dtype is DType.I8


@functools.lru_cache(maxsize=4096)
def moved_params(params: QuantParams) -> QuantParams:
    """The parameters of the codes plus 128."""
    return QuantParams(
        storage=DType.U8,
        scale=params.scale,
        zero_point=params.zero_point + OFFSET,
        axis=params.axis,
        block=params.block,
        expressed=params.expressed,
        low=None if params.low is None else params.low + OFFSET,
        high=None if params.high is None else params.high + OFFSET,
    )


def signed_params(params: QuantParams) -> QuantParams:
    """The parameters of u8 codes minus 128."""
    return QuantParams(
        storage=DType.I8,
        scale=params.scale,
        zero_point=params.zero_point - OFFSET,
        axis=params.axis,
        block=params.block,
        expressed=params.expressed,
        low=None if params.low is None else params.low - OFFSET,
        high=None if params.high is None else params.high - OFFSET,
    )


def moved_codes(codes: Array) -> Array:
    """The codes plus 128, as u8."""
    return (codes.view(np.uint8) ^ np.uint8(OFFSET)).reshape(codes.shape)


def signed_codes(codes: Array) -> Array:
    """What `moved_codes` moved, as s8 again."""
    return (codes ^ np.uint8(OFFSET)).view(np.int8)


def moved_operator(op: Op, x: TensorType | None, table: Array | None) -> Moved | None:
    """The operator when its s8 operands and results move up, None when it is not known how.

    `x` is the type of operand 0 before, `table` the constant that a look-up has.
    """
    if isinstance(op, storage_cast.StorageCast) and (op.out is None or not is_signed(x)):
        return None  # plain integers have no zero point that could move
    params = getattr(op, "out", None)
    makes = isinstance(params, QuantParams) and params.storage is DType.I8
    return shifted_operator(op, is_signed(x), makes, table, OFFSET)


def shifted_operator(
    op: Op, reads: bool, makes: bool, table: Array | None, by: int
) -> Moved | None:
    """The operator when codes shift by +-128; None when it is not known how.

    `reads` and `makes` say whether operand 0 and the results are among those that shift.
    """
    if type(op).__module__ not in MOVABLE or isinstance(op, quantize.DynamicQuantize):
        return None
    if isinstance(op, storage_cast.StorageCast) and reads and (op.out is None or not makes):
        return None  # plain integers have no zero point that could move
    update: dict[str, object] = {}
    if isinstance(op, clip.Clip) and reads:
        update = {"low": op.low + by, "high": op.high + by}
    elif isinstance(op, pad.Pad) and reads and op.fill is not None:
        update = {"fill": op.fill + by}
    params = getattr(op, "out", None)
    if isinstance(params, QuantParams) and makes:
        update["out"] = moved_params(params) if by > 0 else signed_params(params)
    moved = op.model_copy(update=update) if update else op
    if not isinstance(op, lut.Lut):
        return Moved(moved)
    if table is None:
        return None
    if makes:
        table = moved_codes(table) if by > 0 else signed_codes(table)
    # A table is in the order of the unsigned bit patterns of the codes.
    return Moved(moved, np.roll(table, by) if reads else table)
