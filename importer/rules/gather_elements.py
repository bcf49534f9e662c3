"""GatherElements and GatherND."""

from __future__ import annotations

from intonnx.importer.qdq.boundary import Boundary
from intonnx.importer.qdq.codes import OnCodes, whole
from intonnx.importer.registry import commutes
from intonnx.ir.graph import Refusal
from intonnx.ir.ops.gather_elements import GatherElements, GatherNd
from intonnx.ir.types import QuantParams


@commutes("GatherElements")
def gather_elements_on_codes(
    boundary: Boundary, params: QuantParams | None, exact: bool
) -> OnCodes | Refusal:
    """The indices may be computed at run time."""
    op = GatherElements(axis=boundary.attribute("axis", 0))
    return whole(boundary, params, op, (boundary.name(1),))


@commutes("GatherND")
def gather_nd_on_codes(
    boundary: Boundary, params: QuantParams | None, exact: bool
) -> OnCodes | Refusal:
    """The indices may be computed at run time; opset 11 has no batch axes."""
    op = GatherNd(batch_dims=boundary.attribute("batch_dims", 0))
    return whole(boundary, params, op, (boundary.name(1),))
