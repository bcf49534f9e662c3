"""DepthToSpace and SpaceToDepth."""

from __future__ import annotations

from intonnx.importer.qdq.boundary import Boundary
from intonnx.importer.qdq.codes import OnCodes, whole
from intonnx.importer.registry import commutes
from intonnx.ir.graph import Refusal
from intonnx.ir.ops.depth_to_space import DepthToSpace, SpaceToDepth
from intonnx.ir.types import QuantParams


@commutes("DepthToSpace")
def depth_to_space_on_codes(
    boundary: Boundary, params: QuantParams | None, exact: bool
) -> OnCodes | Refusal:
    """The mode came with opset 11."""
    op = DepthToSpace(
        blocksize=boundary.attribute("blocksize"), mode=boundary.attribute("mode", "DCR")
    )
    return whole(boundary, params, op)


@commutes("SpaceToDepth")
def space_to_depth_on_codes(
    boundary: Boundary, params: QuantParams | None, exact: bool
) -> OnCodes | Refusal:
    """One mode only."""
    return whole(boundary, params, SpaceToDepth(blocksize=boundary.attribute("blocksize")))
