"""Transpose."""

from __future__ import annotations

from intonnx.importer.qdq.boundary import Boundary
from intonnx.importer.qdq.codes import OnCodes, whole
from intonnx.importer.registry import commutes
from intonnx.ir.graph import Refusal
from intonnx.ir.ops.transpose import Transpose
from intonnx.ir.types import QuantParams


@commutes("Transpose")
def transpose_on_codes(
    boundary: Boundary, params: QuantParams | None, exact: bool
) -> OnCodes | Refusal:
    """The axes are reversed where the model gives no `perm`."""
    perm = boundary.attribute("perm")
    rank = boundary.type(0).rank
    if perm is None and rank is not None:
        perm = tuple(reversed(range(rank)))
    return whole(boundary, params, Transpose(perm=perm))
