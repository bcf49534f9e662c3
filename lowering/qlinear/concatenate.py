"""Concat on codes, QLinearConcat, and Concat between DQ and Q."""

from __future__ import annotations

from intonnx.ir.graph import Node
from intonnx.ir.ops.concatenate import Concatenate
from intonnx.ir.types import DType

from .emitter import CONTRIB, Emitter
from .registry import emitters


@emitters.register(Concatenate)
def concatenate(op: Concatenate, node: Node, out: Emitter) -> None:
    """Concat on codes of equal parameters; QLinearConcat for 8-bit codes of one storage type."""
    if op.out is None or (out.qlinear and all(out.params(n) == op.out for n in node.operands)):
        names = [out.operand(name) for name in node.operands]
        return out.node("Concat", names, node.results, axis=op.axis)
    kinds = [op.out, *(out.params(name) for name in node.operands)]
    one_storage = len({kind.storage for kind in kinds}) == 1
    eight_bit = op.out.storage in (DType.U8, DType.I8)
    float32 = all(kind.expressed is DType.F32 for kind in kinds)
    if not (out.contrib and one_storage and eight_bit and float32):
        return out.between(node, "Concat", axis=op.axis)
    triples = [item for name in node.operands for item in out.quantized_operand(name)]
    return out.node(
        "QLinearConcat",
        [*out.quantization(op.out), *triples],
        node.results,
        domain=CONTRIB,
        axis=op.axis,
    )
