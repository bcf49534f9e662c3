"""Which opset to write: new enough for quantized operators, one that every kept node allows."""

from __future__ import annotations

from intonnx.ir.graph import Graph

NEEDED = 13
"""Per-axis DequantizeLinear and 8-bit integers in Clip, Pad and the movers."""


def export_opset(graph: Graph) -> int:
    """The model's own opset where it is at least 13, else 13; 21 for 16-bit and 4-bit codes.

    Nodes that stay ONNX are written as they are, so their operators must mean the same at the
    opset that is written; where they do not, they are converted, see `opsets`.
    """
    own = int(graph.metadata.get("opsets", {}).get("", NEEDED))
    wide = any(
        kind.quant is not None and kind.dtype.bits not in (8, 32) for kind in graph.types.values()
    )
    return max(own, 21 if wide else NEEDED)
