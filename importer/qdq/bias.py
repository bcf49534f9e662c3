"""The bias of an accumulating operator: int32 at the scale of the accumulator."""

from __future__ import annotations

import numpy as np

from intonnx.ir.graph import Refusal
from intonnx.ir.reasons import Code
from intonnx.ir.types import Array, DType, TensorType, plain

from .boundary import Boundary


def bias_operand(
    boundary: Boundary, index: int, scale: Array, weights: TensorType, channel_axis: int = 0
) -> str | Refusal:
    """The name of an int32 constant for the bias at `index`, "" when there is none.

    `scale` is the accumulator's: float32, rank 0 or one entry a channel. An int32 bias that has
    this scale and zero point 0 is used as it is. Any other is converted: its real value, in
    float64, divided by the scale and rounded half to even, which is exact to half an accumulator
    step. Refuses a bias that is computed at run time or leaves the range of int32.
    """
    if not boundary.has(index):
        return ""
    value = boundary.quantized(index)
    channels = weights.shape[channel_axis] if weights.shape is not None else "?"
    if value is not None and value.codes is not None:
        params = value.params
        same = params.storage is DType.I32 and not np.any(params.zero_point)
        if same and np.array_equal(np.broadcast_to(params.scale, scale.shape), scale):
            return _constant(boundary, index, np.broadcast_to(value.codes.reshape(-1), channels))
        scales, zeros = params.along(1)
        real = (value.codes.astype(np.float64) - zeros) * scales.astype(np.float64)
    else:
        constant = boundary.needs_constant(index, "bias")
        if isinstance(constant, Refusal):
            return constant
        real = constant.astype(np.float64)
    codes = np.rint(real.reshape(-1) / scale.astype(np.float64))
    if not np.all(np.abs(codes) <= DType.I32.high):
        return Refusal(
            code=Code.BIAS_OUT_OF_RANGE,
            detail=f"the bias '{boundary.name(index)}' needs more than 32 bits at the scale of "
            "input times weights: use larger scales or a smaller bias",
        )
    return _constant(boundary, index, np.broadcast_to(codes.astype(np.int32), channels))


def _constant(boundary: Boundary, index: int, codes: Array) -> str:
    codes = np.ascontiguousarray(codes)
    name = f"{boundary.name(index)}.codes"
    known = boundary.rewriter.constants.get(name)
    if known is not None and known.dtype == codes.dtype and np.array_equal(known, codes):
        return name
    return boundary.constant_codes(name, codes, plain(DType.I32, codes.shape))
