"""CumSum."""

from __future__ import annotations

from intonnx.importer.qdq.boundary import Boundary
from intonnx.importer.registry import quantizes
from intonnx.ir.graph import Refusal
from intonnx.ir.ops.cumsum import CumSum


@quantizes("CumSum")
def quantize_cumsum(boundary: Boundary) -> Refusal | None:
    """Running sums of codes are accumulators with their scale."""
    x, axis = boundary.needs_activation(0), boundary.needs_constant(1, "axis")
    if isinstance(x, Refusal):
        return x
    if isinstance(axis, Refusal):
        return axis
    op = CumSum(
        axis=int(axis.reshape(-1)[0]),
        exclusive=bool(boundary.attribute("exclusive", 0)),
        reverse=bool(boundary.attribute("reverse", 0)),
    )
    misfit = boundary.misfit(op, [x.type])
    if misfit is None:
        hint = f"{boundary.node.results[0]}.accumulator"
        boundary.accumulated(boundary.emit(op, [x.name], hint))
    return misfit
