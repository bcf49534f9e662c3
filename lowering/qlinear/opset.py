"""Which opset to write: new enough for quantized operators, one that every kept node allows."""

from __future__ import annotations

import onnx

from intonnx.ir.errors import ExportFailure
from intonnx.ir.graph import Graph, bodies_of
from intonnx.ir.types import DType

NEEDED = 13
"""Per-axis DequantizeLinear and 8-bit integers in Clip, Pad and the movers."""


def export_opset(graph: Graph, wanted: int | None = None) -> int:
    """The opset that is asked for, else the model's own where it is new enough for the codes.

    Codes of 8 bits need opset 13, float16 and bfloat16 scales 19, codes of 16 and 4 bits and blocks
    21, those of 2 bits 25. Nodes that stay ONNX are written as they are, so their operators must
    mean the same at the opset that is written; where they do not, they are converted, see `opsets`.

    Raises ExportFailure when `wanted` is too old for the codes, or newer than the onnx package.
    """
    needed = _needed(graph)
    if wanted is None:
        return max(int(graph.metadata.get("opsets", {}).get("", NEEDED)), needed)
    newest = onnx.defs.onnx_opset_version()
    if not needed <= wanted <= newest:
        raise ExportFailure(
            f"opset {wanted} cannot be written: the codes of this graph need opset {needed}, and "
            f"the onnx package knows opsets up to {newest}"
        )
    return wanted


def _needed(graph: Graph) -> int:
    params = [kind.quant for kind in graph.types.values() if kind.quant is not None]
    wide = any(quant.storage.bits not in (8, 32) or quant.block is not None for quant in params)
    narrow = any(quant.storage.bits == 2 for quant in params)
    half = any(q.expressed is not DType.F32 and q.storage is not DType.I32 for q in params)
    bodies = (body for node in graph.nodes for body in bodies_of(node.op).values())
    own = 25 if narrow else 21 if wide else 19 if half else NEEDED
    return max([own, *map(_needed, bodies)])
