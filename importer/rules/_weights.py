"""What the two kinds of convolution ask of their weights."""

from __future__ import annotations

import numpy as np

from intonnx.importer.qdq.boundary import Boundary, Quantized
from intonnx.ir.graph import Refusal
from intonnx.ir.quantization import expand
from intonnx.ir.reasons import Code
from intonnx.ir.types import QuantParams, quantized


def kernel_codes(boundary: Boundary, channels: int) -> Quantized | Refusal:
    """Input 1 as codes without blocks; `channels` is the axis of the output channels.

    Blocks that all have the scale of their output channel are no blocks. Which axis its scales may
    have is left to `per_channel_refusal` and the caller.
    """
    w = boundary.quantized(1)
    if w is None or w.params.storage.bits > 16:
        return Refusal(
            code=Code.INPUT_NOT_QUANTIZED,
            detail=f"the weights '{boundary.name(1)}' do not arrive as 16-bit codes or narrower "
            "ones: give them as a DequantizeLinear of integers",
        )
    if w.params.block is None:
        return w
    whole = _without_blocks(boundary, w, channels)
    if whole is not None:
        return whole
    return Refusal(
        code=Code.BLOCKED_INPUT,
        detail=f"the weights '{w.name}' have a scale for each {w.params.block} elements along "
        f"axis {w.params.axis}, and others in every cell of the kernel, so that one sum adds "
        "products of several scales: quantize them per tensor or per output "
        f"channel (axis {channels})",
    )


def _without_blocks(boundary: Boundary, w: Quantized, channels: int) -> Quantized | None:
    """The same codes with one scale for each output channel, where the blocks say no more."""
    if w.codes is None:
        return None
    rows = [
        np.moveaxis(np.broadcast_to(array, w.codes.shape), channels, 0).reshape(
            w.codes.shape[channels], -1
        )
        for array in expand(w.params, w.codes.shape)
    ]
    if w.codes.size == 0 or not all(np.all(row == row[:, :1]) for row in rows):
        return None
    scale, zero_point = (row[:, 0] for row in rows)
    params = QuantParams(
        storage=w.params.storage,
        scale=scale,
        zero_point=zero_point,
        axis=channels,
        expressed=w.params.expressed,
    )
    kind = quantized(params, w.codes.shape)
    return Quantized(boundary.constant_codes(f"{w.name}.channels", w.codes, kind), kind, w.codes)


def per_channel_refusal(w: Quantized, channels: int) -> Refusal:
    """The refusal of weights with scales along an axis that the products are added over."""
    return Refusal(
        code=Code.PER_AXIS_INPUT,
        detail=f"the weights '{w.name}' have scales along axis {w.params.axis}: quantize them per "
        f"tensor or per output channel (axis {channels})",
    )
