"""Equal, Less, LessOrEqual, Greater and GreaterOrEqual."""

from __future__ import annotations

from intonnx.importer.qdq.boundary import Boundary
from intonnx.importer.registry import quantizes
from intonnx.ir.graph import Refusal
from intonnx.ir.ops.compare import Compare, Relation

from ._binary import real_operands

_RELATIONS: dict[str, Relation] = {
    "Equal": "equal",
    "Less": "less",
    "LessOrEqual": "less_or_equal",
    "Greater": "greater",
    "GreaterOrEqual": "greater_or_equal",
}


@quantizes(*_RELATIONS)
def quantize_comparison(boundary: Boundary) -> Refusal | None:
    """The result is bool, so no quantizer follows."""
    if not boundary.type(0).dtype.is_float:
        return None
    operands = real_operands(boundary)
    if isinstance(operands, Refusal):
        return operands
    op = Compare(relation=_RELATIONS[boundary.op.op_type])
    node = boundary.rewriter.remove(boundary.node_id)
    boundary.rewriter.emit(op, operands, node.results, sources=node.sources,
                           before=boundary.node_id)  # fmt: skip
    return None
