"""Relu and Clip: limits on codes, before or after a quantizer."""

from __future__ import annotations

import numpy as np

from intonnx.importer.node_view import NodeView
from intonnx.importer.qdq.boundary import Boundary
from intonnx.importer.qdq.codes import OnCodes
from intonnx.importer.registry import commutes, imports
from intonnx.ir.errors import ModelFailure
from intonnx.ir.graph import Refusal
from intonnx.ir.ops.clip import Clip
from intonnx.ir.quantization import dequantize_array, quantize_array
from intonnx.ir.reasons import Code
from intonnx.ir.types import DType, QuantParams


@commutes("Relu")
def relu_on_codes(boundary: Boundary, params: QuantParams | None, exact: bool) -> OnCodes | Refusal:
    """max(x, 0) is max(code, zero point): real zero has an exact code."""
    return _clip(boundary, params, 0.0, None, exact)


@imports("Clip", since=12)
def clip_integers(node: NodeView) -> None:
    """Clip of integers: what reads them as codes learns their range, as in Q -> Clip -> DQ."""
    kind = node.type(0)
    bounds = [node.constant(index) for index in (1, 2)]
    known = all(
        bound is not None or not node.has(index) for index, bound in enumerate(bounds, start=1)
    )
    if kind.is_integer and kind.dtype.bits <= 16 and known:
        low, high = (
            default if bound is None else int(bound.reshape(())[()])
            for bound, default in zip(bounds, (kind.dtype.low, kind.dtype.high), strict=True)
        )
        node.limit(low, high)
    node.literal()


@commutes("Clip")
def clip_on_codes(boundary: Boundary, params: QuantParams | None, exact: bool) -> OnCodes | Refusal:
    """Bounds are attributes until opset 10 and inputs from 11 on; a missing one does not limit."""
    bounds: list[float | None] = []
    for index, name in ((1, "min"), (2, "max")):
        if boundary.op.version < 11:
            bounds.append(boundary.attribute(name))
            continue
        if not boundary.has(index):
            bounds.append(None)
            continue
        value = boundary.needs_constant(index, f"{name} bound")
        if isinstance(value, Refusal):
            return value
        if value.size != 1:
            raise ModelFailure(f"the {name} bound '{boundary.name(index)}' has {value.size} values")
        bounds.append(float(value.reshape(())[()]))
    return _clip(boundary, params, bounds[0], bounds[1], exact)


def _clip(
    boundary: Boundary,
    params: QuantParams | None,
    low: float | None,
    high: float | None,
    exact: bool,
) -> OnCodes | Refusal:
    if params is not None and not params.per_tensor:
        return _of_channels(boundary, params, low, high)
    if params is None or boundary.type(0).is_integer:
        # The model limits integers, which may be codes: the bounds are integers too.
        return _of_integers(boundary.type(0).dtype, low, high)
    if exact and not (_keeps_reals(low, params, -1) and _keeps_reals(high, params, 1)):
        return Refusal(
            code=Code.OUTPUT_NOT_QUANTIZED,
            detail=f"a bound of {low} to {high} is no multiple of the scale of "
            f"'{boundary.name(0)}': put a QuantizeLinear after it",
        )
    lowest = params.qmin if low is None else _code(low, params)
    highest = params.qmax if high is None else _code(high, params)
    # ONNX gives the upper bound when the bounds are the wrong way round.
    return OnCodes(Clip(low=min(lowest, highest), high=highest))


def _of_channels(
    boundary: Boundary, params: QuantParams, low: float | None, high: float | None
) -> OnCodes | Refusal:
    """Zero is the code 0 of every channel of an accumulator; other bounds differ in their codes."""
    sums = params.storage.bits > 16 and params.block is None and not np.any(params.zero_point)
    if not sums or low not in (0.0, None) or high not in (0.0, None):
        return Refusal(
            code=Code.PER_AXIS_INPUT,
            detail=f"'{boundary.name(0)}' has a scale for each channel: quantize it per tensor",
        )
    highest = params.qmax if high is None else 0
    return OnCodes(Clip(low=min(params.qmin if low is None else 0, highest), high=highest))


def _of_integers(dtype: DType, low: float | None, high: float | None) -> OnCodes:
    highest = dtype.high if high is None else int(high)
    lowest = dtype.low if low is None else max(int(low), dtype.low)
    return OnCodes(Clip(low=min(lowest, highest), high=highest))


def _code(bound: float, params: QuantParams) -> int:
    return int(quantize_array(np.asarray(bound, np.float32), params)[()])


def _keeps_reals(bound: float | None, params: QuantParams, side: int) -> bool:
    """Whether clipping codes clips the real values exactly: on the grid, or beyond the range.

    `side` is -1 for a lower bound and 1 for an upper one.
    """
    if bound is None:
        return True
    last = params.qmin if side < 0 else params.qmax
    codes = np.asarray([_code(bound, params), last])
    real, end = (float(value) for value in dequantize_array(codes, params))
    return real == np.float32(bound) or (bound - end) * side > 0
