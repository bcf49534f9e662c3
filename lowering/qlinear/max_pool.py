"""MaxPool on codes."""

from __future__ import annotations

from intonnx.ir.graph import Node
from intonnx.ir.ops.max_pool import MaxPool, MaxPool1d, MaxPool2d, MaxPool3d

from ._pool import attributes
from .emitter import Emitter
from .registry import emitters


@emitters.register(MaxPool1d, MaxPool2d, MaxPool3d)
def max_pool(op: MaxPool, node: Node, out: Emitter) -> None:
    """MaxPool on 8-bit integers (opset 12); other codes are dequantized, which keeps the order."""
    kind = out.type(node.operands[0])
    fields = attributes(op, (kind.shape or ())[2:])
    if op.indices == "columns":
        fields["storage_order"] = 1
    results = list(node.results)
    if not results[0]:
        results[0] = out.fresh(f"{results[1]}.values")
    if kind.quant is None or (out.qlinear and kind.dtype.bits == 8):
        return out.node("MaxPool", [out.operand(node.operands[0])], results, **fields)
    real = out.fresh(f"{results[0]}.unquantized")
    out.node("MaxPool", [out.real(node.operands[0])], [real, *results[1:]], **fields)
    return out.quantize(real, kind.quant, results[0])
