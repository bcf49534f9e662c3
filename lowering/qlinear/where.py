"""Where on codes, QLinearWhere, and Where between DQ and Q."""

from __future__ import annotations

from intonnx.ir.graph import Node
from intonnx.ir.ops.where import Where
from intonnx.ir.types import DType
from intonnx.lowering.binary import same_8_bit

from ._selection import has_equal_parameters, select
from .emitter import CONTRIB, Emitter
from .registry import emitters

_BRANCHES = (1, 2)


@emitters.register(Where)
def where(op: Where, node: Node, out: Emitter) -> None:
    """Where on 8-bit codes of equal parameters, QLinearWhere for others of one storage type."""
    x, y = (node.operands[index] for index in _BRANCHES)
    equal = has_equal_parameters(node, out, op.out, _BRANCHES)
    if (
        op.out is None
        or equal
        or not (out.contrib and same_8_bit(out.type(x), out.type(y), op.out))
    ):
        select("Where", node, out, op.out, _BRANCHES, kernels=(DType.U8, DType.I8))
        return
    inputs = [out.operand(node.operands[0]), *out.quantized_operand(x), *out.quantized_operand(y)]
    out.node("QLinearWhere", [*inputs, *out.quantization(op.out)], node.results, domain=CONTRIB)
