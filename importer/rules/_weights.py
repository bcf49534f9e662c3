"""What the two kinds of convolution ask of their weights."""

from __future__ import annotations

from intonnx.importer.qdq.boundary import Boundary, Quantized
from intonnx.ir.graph import Refusal
from intonnx.ir.reasons import Code


def kernel_codes(boundary: Boundary, channels: int) -> Quantized | Refusal:
    """Input 1 as codes without blocks; `channels` is the axis of the output channels.

    Which axis its scales may have is left to `per_channel_refusal` and the caller.
    """
    w = boundary.quantized(1)
    if w is None or w.params.storage.bits > 16:
        return Refusal(
            code=Code.INPUT_NOT_QUANTIZED,
            detail=f"the weights '{boundary.name(1)}' do not arrive as 16-bit codes or narrower "
            "ones: give them as a DequantizeLinear of integers",
        )
    if w.params.block is not None:
        return Refusal(
            code=Code.BLOCKED_INPUT,
            detail=f"the weights '{w.name}' have a scale for each {w.params.block} elements along "
            f"axis {w.params.axis}: quantize them per tensor or per output channel (axis "
            f"{channels})",
        )
    return w


def per_channel_refusal(w: Quantized, channels: int) -> Refusal:
    """The refusal of weights with scales along an axis that the products are added over."""
    return Refusal(
        code=Code.PER_AXIS_INPUT,
        detail=f"the weights '{w.name}' have scales along axis {w.params.axis}: quantize them per "
        f"tensor or per output channel (axis {channels})",
    )
