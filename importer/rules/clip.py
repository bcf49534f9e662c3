"""Relu and Clip: limits on codes, before or after a quantizer."""

from __future__ import annotations

import numpy as np

from intonnx.importer.qdq.boundary import Boundary
from intonnx.importer.qdq.codes import OnCodes
from intonnx.importer.registry import commutes
from intonnx.ir.graph import Refusal
from intonnx.ir.ops.clip import Clip
from intonnx.ir.quantization import dequantize_array, quantize_array
from intonnx.ir.reasons import Code
from intonnx.ir.types import QuantParams


@commutes("Relu")
def relu_on_codes(boundary: Boundary, params: QuantParams | None, exact: bool) -> OnCodes | Refusal:
    """max(x, 0) is max(code, zero point): real zero has an exact code."""
    return _clip(boundary, params, 0.0, None, exact)


@commutes("Clip")
def clip_on_codes(boundary: Boundary, params: QuantParams | None, exact: bool) -> OnCodes | Refusal:
    """Bounds are attributes until opset 10 and inputs from 11 on; a missing one does not limit."""
    if params is None:
        return _plain(boundary)
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
        bounds.append(float(value.reshape(())[()]))
    return _clip(boundary, params, bounds[0], bounds[1], exact)


def _clip(
    boundary: Boundary,
    params: QuantParams | None,
    low: float | None,
    high: float | None,
    exact: bool,
) -> OnCodes | Refusal:
    if params is None:
        return _plain(boundary)
    if not params.per_tensor:
        return Refusal(
            code=Code.PER_AXIS_INPUT,
            detail=f"'{boundary.name(0)}' has a scale for each channel: quantize it per tensor",
        )
    if exact and not all(bound is None or _on_grid(bound, params) for bound in (low, high)):
        return Refusal(
            code=Code.OUTPUT_NOT_QUANTIZED,
            detail=f"a bound of {low} to {high} is no multiple of the scale of "
            f"'{boundary.name(0)}': put a QuantizeLinear after it",
        )
    lowest = params.qmin if low is None else _code(low, params)
    highest = params.qmax if high is None else _code(high, params)
    # ONNX gives the upper bound when the bounds are the wrong way round.
    return OnCodes(Clip(low=min(lowest, highest), high=highest))


def _plain(boundary: Boundary) -> Refusal:
    return Refusal(
        code=Code.INPUT_NOT_QUANTIZED,
        detail=f"'{boundary.name(0)}' is a tensor of plain integers",
    )


def _code(bound: float, params: QuantParams) -> int:
    return int(quantize_array(np.asarray(bound, np.float32), params)[()])


def _on_grid(bound: float, params: QuantParams) -> bool:
    """Whether clipping codes clips the real values exactly: on the grid, or beyond the range."""
    code = np.asarray(_code(bound, params))
    real = float(dequantize_array(code, params)[()])
    if real == np.float32(bound):
        return True
    return (code[()] == params.qmin and bound < real) or (code[()] == params.qmax and bound > real)
