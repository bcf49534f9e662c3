"""Quantization parameters from what ONNX gives: scale and zero point tensors of many shapes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from pydantic import ValidationError

from intonnx.ir.errors import QuantizationFailure
from intonnx.ir.types import Array, Dim, DType, QuantParams, quantized

_EXPRESSED = {"float32": DType.F32, "float16": DType.F16, "bfloat16": DType.BF16}
_COMMON = {np.dtype(np.float32): DType.F32, np.dtype(np.float16): DType.F16}
"""Looked up first: the name of a numpy type is made anew each time."""


def expressed_type(scale: Array) -> DType | None:
    """The type of the real values behind a scale; None for one that ONNX does not allow."""
    return _COMMON.get(scale.dtype) or _EXPRESSED.get(str(scale.dtype))


@lru_cache(maxsize=4096)
def _per_tensor(storage: DType, scale: float, zero_point: int, expressed: DType) -> QuantParams:
    """Q and DQ, and often many of them, have equal parameters: one record serves them all."""
    return QuantParams(
        storage=storage,
        scale=np.asarray(scale, np.float32),
        zero_point=np.asarray(zero_point, np.int64),
        expressed=expressed,
    )


def make_params(
    scale: Array,
    zero_point: Array | None,
    storage: DType,
    *,
    rank: int | None,
    axis: int | None,
    block: int | None = None,
    node: str,
) -> QuantParams:
    """Parameters per tensor (one scale, of shape [] or [1]), per axis or blocked.

    `axis` may be negative and is None where only one scale is allowed; an absent zero point is 0.
    Raises QuantizationFailure when shapes, values or the axis are not those that ONNX allows.
    """
    expressed = expressed_type(scale)
    if expressed is None:
        raise QuantizationFailure(f"the scale is {scale.dtype}", node=node)
    single = scale.size == 1 and (zero_point is None or zero_point.size == 1)
    try:
        if block is None and single:
            zero = 0 if zero_point is None else int(zero_point.reshape(())[()])
            return _per_tensor(storage, float(scale.reshape(())[()]), zero, expressed)
        zeros = np.zeros(scale.shape) if zero_point is None else zero_point
        return QuantParams(
            storage=storage,
            scale=scale.astype(np.float32),
            zero_point=zeros.astype(np.int64),
            axis=_checked_axis(scale, zeros, axis, rank, block, node),
            block=block,
            expressed=expressed,
        )
    except ValidationError as error:
        message = str(error.errors()[0]["msg"]).removeprefix("Value error, ")
        raise QuantizationFailure(message, node=node) from None


def _checked_axis(
    scale: Array, zeros: Array, axis: int | None, rank: int | None, block: int | None, node: str
) -> int:
    if axis is None:
        raise QuantizationFailure(
            f"one scale is allowed here, not {scale.size} (per-axis parameters came with opset 13)",
            node=node,
        )
    if scale.shape != zeros.shape:
        raise QuantizationFailure(
            f"the scale has shape {scale.shape}, the zero point {zeros.shape}", node=node
        )
    if block is None and scale.ndim != 1:
        raise QuantizationFailure(f"the scale has rank {scale.ndim}", node=node)
    if rank is not None and not -rank <= axis < rank:
        raise QuantizationFailure(f"axis {axis} is out of range for rank {rank}", node=node)
    if axis < 0 and rank is None:
        raise QuantizationFailure(f"axis {axis} of a tensor of unknown rank", node=node)
    return axis + rank if axis < 0 and rank is not None else axis


def broadcast_params(
    scale: Array, zeros: Array, storage: DType, shape: Sequence[Dim], expressed: DType = DType.F32
) -> QuantParams | None:
    """Parameters from a scale and zero points that broadcast to codes of this shape, as Mul's do.

    None when they vary along more than one axis, or are none that ONNX allows.
    """
    placed = [_placed(array, len(shape)) for array in (scale, zeros)]
    (scales, one), (zero, other) = (found or (None, None) for found in placed)
    if scales is None or zero is None or (one is not None and other is not None and one != other):
        return None
    scales, zero = np.broadcast_arrays(scales, zero)
    axis = other if one is None else one
    try:
        params = QuantParams(
            storage=storage, scale=scales, zero_point=zero, axis=axis, expressed=expressed
        )
        quantized(params, shape)
    except ValueError:  # a zero point out of range, or an axis of another length
        return None
    return params


def _placed(array: Array, rank: int) -> tuple[Array, int | None] | None:
    """A scalar, or a vector and the axis of a tensor of this rank that it lies along."""
    if array.size == 1 and array.ndim <= rank:
        return array.reshape(()), None
    axes = [axis for axis, size in enumerate(array.shape) if size != 1]
    if len(axes) != 1 or array.ndim > rank:
        return None
    return array.reshape(-1), rank - array.ndim + axes[0]
