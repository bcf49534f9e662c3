"""Which opset to write: new enough for quantized operators, one that every kept node allows."""

from __future__ import annotations

import onnx

from intonnx.ir.graph import Graph
from intonnx.ir.ops.onnx_op import OnnxOp

NEEDED = 13
"""Per-axis DequantizeLinear and 8-bit integers in Clip, Pad and the movers."""


def export_opset(graph: Graph) -> int:
    """The model's own opset where it is at least 13, else 13; 21 for 16-bit and 4-bit codes.

    Nodes that stay ONNX are written as they are, so their operators must mean the same at the
    opset that is written; where they do not, they are converted by `kept_node`.
    """
    own = int(graph.metadata.get("opsets", {}).get("", NEEDED))
    wide = any(
        kind.quant is not None and kind.dtype.bits not in (8, 32) for kind in graph.types.values()
    )
    return max(own, 21 if wide else NEEDED)


def means_the_same(op: OnnxOp, opset: int) -> bool:
    """Whether an ai.onnx operator has the same inputs, attributes and defaults at two opsets."""
    if op.domain or op.version == opset or not onnx.defs.has(op.op_type):
        return True
    old, new = (_signature(op.op_type, version) for version in (op.version, opset))
    return old == new


def _signature(op_type: str, opset: int) -> object:
    schema = onnx.defs.get_schema(op_type, opset, "")
    return (
        [(given.name, given.option) for given in schema.inputs],
        [(given.name, given.option) for given in schema.outputs],
        {
            name: (attribute.type, attribute.default_value.SerializeToString(deterministic=True))
            for name, attribute in schema.attributes.items()
        },
    )
