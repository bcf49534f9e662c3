"""Pad: on codes, before or after a quantizer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from intonnx.importer.qdq.boundary import Boundary
from intonnx.importer.qdq.codes import OnCodes
from intonnx.importer.registry import commutes
from intonnx.ir.graph import Refusal
from intonnx.ir.ops.pad import Pad
from intonnx.ir.quantization import dequantize_array, quantize_array
from intonnx.ir.reasons import Code
from intonnx.ir.types import Array, Dim, QuantParams, plain, quantized


@dataclass(frozen=True)
class _Amounts:
    before: tuple[int, ...]
    after: tuple[int, ...]


@commutes("Pad")
def pad_on_codes(boundary: Boundary, params: QuantParams | None, exact: bool) -> OnCodes | Refusal:
    """Extend the codes; a constant is quantized as the data is.

    Behind a quantizer that is what the model computes, whatever the constant. Without one the
    constant must be a real value that a code has.
    """
    shape = boundary.type(0).shape
    if shape is None:
        return Refusal(
            code=Code.UNSUPPORTED_ATTRIBUTE,
            detail=f"the rank of '{boundary.name(0)}' is not known: give it a shape",
        )
    amounts = _amounts(boundary, len(shape))
    if isinstance(amounts, Refusal):
        return amounts
    mode = boundary.attribute("mode", "constant")
    fill = _fill(boundary, params, exact) if mode == "constant" else None
    if isinstance(fill, Refusal):
        return fill
    op = Pad(before=amounts.before, after=amounts.after, mode=mode, fill=fill)
    return _misfit(boundary, op, params, shape) or OnCodes(op)


def _misfit(
    boundary: Boundary, op: Pad, params: QuantParams | None, shape: tuple[Dim, ...]
) -> Refusal | None:
    if params is not None:
        return boundary.misfit(op, [quantized(params, shape)])
    return boundary.misfit(op, [plain(boundary.type(0).dtype, shape)])


def _amounts(boundary: Boundary, rank: int) -> _Amounts | Refusal:
    """Attribute `pads` until opset 10, input 1 from 11 on, for the axes of input 3 from 18 on."""
    if boundary.op.version < 11:
        given = boundary.attribute("pads") or boundary.attribute("paddings")
        pads: Array = np.asarray(given, np.int64)
    else:
        found = boundary.needs_constant(1, "amount of padding")
        if isinstance(found, Refusal):
            return found
        pads = found.reshape(-1)
    axes = np.arange(rank)
    if boundary.has(3):
        chosen = boundary.needs_constant(3, "list of padded axes")
        if isinstance(chosen, Refusal):
            return chosen
        axes = chosen.reshape(-1) % max(rank, 1)
    if pads.size != 2 * axes.size:
        return Refusal(
            code=Code.UNSUPPORTED_ATTRIBUTE,
            detail=f"{pads.size} amounts of padding for {axes.size} axes of '{boundary.name(0)}'",
        )
    whole = np.zeros((2, rank), np.int64)
    whole[:, axes] = pads.reshape(2, -1)
    return _Amounts(tuple(whole[0].tolist()), tuple(whole[1].tolist()))


def _fill(boundary: Boundary, params: QuantParams | None, exact: bool) -> int | Refusal:
    real: Array = np.asarray(boundary.attribute("value", 0.0), np.float32)
    if boundary.op.version >= 11:
        real = np.zeros((), np.float32)
        if boundary.has(2):
            found = boundary.needs_constant(2, "padding value")
            if isinstance(found, Refusal):
                return found
            real = found.reshape(())
    if params is None or boundary.type(0).is_integer:
        # The model pads integers, which may be codes: the value is an integer too.
        return int(real)
    # With a scale for each channel there may be no one code: the data may still share zero.
    codes = quantize_array(np.broadcast_to(real, params.scale.shape), _as_vector(params))
    code = int(codes.flat[0])
    if np.any(codes != code):
        return Refusal(
            code=Code.PER_AXIS_INPUT,
            detail=f"the padding value {float(real)} of '{boundary.name(0)}' has another code in "
            "each channel: quantize it per tensor",
        )
    if exact and np.any(dequantize_array(codes, _as_vector(params)) != real):
        return Refusal(
            code=Code.OUTPUT_NOT_QUANTIZED,
            detail=f"the padding value {float(real)} is no multiple of the scale of "
            f"'{boundary.name(0)}': put a QuantizeLinear after '{boundary.node.results[0]}'",
        )
    return code


def _as_vector(params: QuantParams) -> QuantParams:
    """Per-axis parameters for an array that has only that axis."""
    return params if params.axis is None else params.with_axis(0)
