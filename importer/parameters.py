"""Quantization parameters from what ONNX gives: scale and zero point tensors of many shapes."""

from __future__ import annotations

import numpy as np
from pydantic import ValidationError

from intonnx.ir.errors import QuantizationFailure
from intonnx.ir.types import Array, DType, QuantParams

_EXPRESSED = {"float32": DType.F32, "float16": DType.F16, "bfloat16": DType.BF16}


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
    zeros = np.zeros(scale.shape, np.int64) if zero_point is None else zero_point.astype(np.int64)
    if str(scale.dtype) not in _EXPRESSED:
        raise QuantizationFailure(f"the scale is {scale.dtype}", node=node)
    if block is None and scale.size == 1 and zeros.size == 1:
        scale, zeros, axis = scale.reshape(()), zeros.reshape(()), None
    else:
        axis = _checked_axis(scale, zeros, axis, rank, block, node)
    try:
        return QuantParams(
            storage=storage,
            scale=scale.astype(np.float32),
            zero_point=zeros,
            axis=axis,
            block=block,
            expressed=_EXPRESSED[str(scale.dtype)],
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
