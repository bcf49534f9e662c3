"""Gather."""

from __future__ import annotations

from intonnx.importer.qdq.boundary import Boundary
from intonnx.importer.qdq.codes import OnCodes, whole
from intonnx.importer.registry import commutes
from intonnx.ir.graph import Refusal
from intonnx.ir.ops.gather import Gather
from intonnx.ir.types import QuantParams


@commutes("Gather")
def gather_on_codes(
    boundary: Boundary, params: QuantParams | None, exact: bool
) -> OnCodes | Refusal:
    """The indices may be computed at run time: constant codes then are an embedding table."""
    op = Gather(axis=boundary.attribute("axis", 0))
    return whole(boundary, params, op, (boundary.name(1),))
