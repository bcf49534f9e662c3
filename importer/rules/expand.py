"""Expand and Tile."""

from __future__ import annotations

from intonnx.importer.qdq.boundary import Boundary
from intonnx.importer.qdq.codes import OnCodes, whole
from intonnx.importer.registry import commutes
from intonnx.ir.graph import Refusal
from intonnx.ir.ops.expand import Expand, Tile
from intonnx.ir.types import QuantParams

from ._integers import integers


@commutes("Expand")
def expand_on_codes(
    boundary: Boundary, params: QuantParams | None, exact: bool
) -> OnCodes | Refusal:
    """The shape may be computed at run time."""
    shape = integers(boundary, 1, "", "shape", since=1)
    if isinstance(shape, Refusal):
        return whole(boundary, params, Expand(), (boundary.name(1),))
    return whole(boundary, params, Expand(shape=shape or ()))


@commutes("Tile")
def tile_on_codes(boundary: Boundary, params: QuantParams | None, exact: bool) -> OnCodes | Refusal:
    """The repeats may be computed at run time."""
    repeats = integers(boundary, 1, "", "repeats", since=1)
    if isinstance(repeats, Refusal):
        return whole(boundary, params, Tile(), (boundary.name(1),))
    return whole(boundary, params, Tile(repeats=repeats or ()))
