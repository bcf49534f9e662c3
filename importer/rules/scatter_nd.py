"""ScatterND, ScatterElements, and Scatter as it was called before opset 11."""

from __future__ import annotations

from intonnx.importer.qdq.boundary import Boundary
from intonnx.importer.registry import quantizes
from intonnx.ir.graph import Refusal
from intonnx.ir.ops.scatter_nd import ScatterElements, ScatterNd
from intonnx.ir.reasons import Code

from ._selection import quantize_selection


@quantizes("ScatterND", lifts=True)
def quantize_scatter_nd(boundary: Boundary) -> Refusal | None:
    """Codes written over codes."""
    if (refusal := _reduction(boundary)) is not None:
        return refusal
    return quantize_selection(boundary, (0, 2), lambda out: ScatterNd(out=out))


@quantizes("ScatterElements", "Scatter", lifts=True)
def quantize_scatter_elements(boundary: Boundary) -> Refusal | None:
    """Codes written over codes."""
    if (refusal := _reduction(boundary)) is not None:
        return refusal
    axis = boundary.attribute("axis", 0)
    return quantize_selection(boundary, (0, 2), lambda out: ScatterElements(axis=axis, out=out))


def _reduction(boundary: Boundary) -> Refusal | None:
    reduction = boundary.attribute("reduction", "none")
    if reduction == "none" or not boundary.type(0).dtype.is_float:
        return None
    return Refusal(
        code=Code.UNSUPPORTED_ATTRIBUTE,
        detail=f"'{boundary.name(2)}' is combined with '{boundary.name(0)}' by reduction "
        f"'{reduction}': use 'none' and an operator before it",
    )
