"""Which opset to write: new enough for quantized operators, one that every kept node allows."""

from __future__ import annotations

from intonnx.ir.graph import Graph, bodies_of

NEEDED = 13
"""Per-axis DequantizeLinear and 8-bit integers in Clip, Pad and the movers."""


def export_opset(graph: Graph) -> int:
    """The model's own opset where it is at least 13, else 13, and what the codes need.

    16-bit and 4-bit codes and blocks came with opset 21, 2-bit codes with 25. Nodes that stay ONNX
    are written as they are, so their operators must mean the same at the opset that is written;
    where they do not, they are converted, see `opsets`.
    """
    own = int(graph.metadata.get("opsets", {}).get("", NEEDED))
    return max(own, _needed(graph))


def _needed(graph: Graph) -> int:
    params = [kind.quant for kind in graph.types.values() if kind.quant is not None]
    wide = any(quant.storage.bits not in (8, 32) or quant.block is not None for quant in params)
    narrow = any(quant.storage.bits == 2 for quant in params)
    bodies = (body for node in graph.nodes for body in bodies_of(node.op).values())
    return max([25 if narrow else 21 if wide else NEEDED, *map(_needed, bodies)])
