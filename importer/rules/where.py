"""Where and QLinearWhere."""

from __future__ import annotations

from intonnx.importer.node_view import NodeView
from intonnx.importer.qdq.boundary import Boundary
from intonnx.importer.registry import imports, quantizes
from intonnx.ir.graph import Refusal
from intonnx.ir.ops.where import Where

from ._selection import quantize_selection


@quantizes("Where", lifts=True)
def quantize_where(boundary: Boundary) -> Refusal | None:
    """Both branches become codes; a float branch takes the parameters of the result.

    A scalar that is far out of their range, as the -1e9 of an attention mask, saturates.
    """
    return quantize_selection(boundary, (1, 2), lambda out: Where(out=out))


@imports("QLinearWhere", since=1, domain="com.microsoft")
def qlinear_where(node: NodeView) -> None:
    """QLinearWhere: condition, X, its scale and zero point, Y, its own, those of the result."""
    storage = node.type(1).dtype
    given = ((2, 3, storage), (5, 6, node.type(4).dtype), (7, 8, storage))
    params = [node.params(scale, zero, kind, rank=None, axis=None) for scale, zero, kind in given]
    x, y, out = params
    if x is None or y is None or out is None:
        return node.keep_for_parameters()
    branches = [node.codes(node.input(1), x), node.codes(node.input(4), y)]
    node.emit(Where(out=out), [node.input(0), *branches])
    return None
