"""Split."""

from __future__ import annotations

from intonnx.importer.qdq.boundary import Boundary
from intonnx.importer.qdq.codes import OnCodes, whole
from intonnx.importer.registry import commutes
from intonnx.ir.graph import Refusal
from intonnx.ir.ops.split import Split
from intonnx.ir.types import QuantParams

from ._integers import integers


@commutes("Split")
def split_on_codes(
    boundary: Boundary, params: QuantParams | None, exact: bool
) -> OnCodes | Refusal:
    """The sizes became an input with opset 13; without them there is one part for each result."""
    axis = boundary.attribute("axis", 0)
    sizes = integers(boundary, 1, "split", "sizes of the parts", since=13)
    if isinstance(sizes, Refusal):
        return sizes
    op = Split(axis=axis, sizes=sizes)
    if sizes is None:
        parts = boundary.attribute("num_outputs", len(boundary.node.results))
        op = Split(axis=axis, parts=parts)
    return whole(boundary, params, op)
