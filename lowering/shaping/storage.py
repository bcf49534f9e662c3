"""Operators on codes that have moved from s8 to u8: 128 is added to codes and zero points."""

from __future__ import annotations

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


def moved_codes(codes: Array) -> Array:
    """The codes plus 128, as u8."""
    return (codes.view(np.uint8) ^ np.uint8(OFFSET)).reshape(codes.shape)


def signed_codes(codes: Array) -> Array:
    """What `moved_codes` moved, as s8 again."""
    return (codes ^ np.uint8(OFFSET)).view(np.int8)


def moved_operator(op: Op, x: TensorType | None, table: Array | None) -> Moved | None:
    """The operator when its s8 operands and results move, None when it is not known how.

    `x` is the type of operand 0 before, `table` the constant that a look-up has.
    """
    if isinstance(op, storage_cast.StorageCast) and (op.out is None or not is_signed(x)):
        return None  # plain integers have no zero point that could move
    if type(op).__module__ not in MOVABLE or isinstance(op, quantize.DynamicQuantize):
        return None
    update: dict[str, object] = {}
    signed = is_signed(x)
    if isinstance(op, clip.Clip) and signed:
        update = {"low": op.low + OFFSET, "high": op.high + OFFSET}
    elif isinstance(op, pad.Pad) and signed and op.fill is not None:
        update = {"fill": op.fill + OFFSET}
    params = getattr(op, "out", None)
    if isinstance(params, QuantParams) and params.storage is DType.I8:
        update["out"] = moved_params(params)
    moved = op.model_copy(update=update) if update else op
    if not isinstance(op, lut.Lut):
        return Moved(moved)
    return None if table is None else Moved(moved, _moved_table(op, signed, table))


def _moved_table(op: lut.Lut, signed: bool, table: Array) -> Array:
    """A table is in the order of the unsigned bit patterns of the codes."""
    entries = moved_codes(table) if op.out.storage is DType.I8 else table
    return np.roll(entries, OFFSET) if signed else entries
