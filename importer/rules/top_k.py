"""TopK: on codes."""

from __future__ import annotations

from intonnx.importer.qdq.boundary import Boundary
from intonnx.importer.qdq.codes import OnCodes, whole
from intonnx.importer.registry import commutes
from intonnx.ir.graph import Refusal
from intonnx.ir.ops.top_k import TopK
from intonnx.ir.reasons import Code
from intonnx.ir.types import QuantParams

from ._integers import integers
from ._order import order_refusal


@commutes("TopK")
def top_k_on_codes(
    boundary: Boundary, params: QuantParams | None, exact: bool
) -> OnCodes | Refusal:
    """Scales are positive, so the largest codes are where the largest values are.

    The number of elements may be computed at run time.
    """
    if params is not None and params.storage.bits > 16:
        return Refusal(
            code=Code.INPUT_NOT_QUANTIZED,
            detail=f"'{boundary.name(0)}' arrives as {params.storage} sums: put a QuantizeLinear "
            "and a DequantizeLinear before it",
        )
    if exact and params is not None and params.per_tensor:
        refusal = order_refusal(boundary.name(0), params)
        if refusal is not None:
            return refusal
    axis = boundary.attribute("axis", -1)
    largest = bool(boundary.attribute("largest", 1))
    count = integers(boundary, 1, "k", "number of elements", since=10)
    if isinstance(count, tuple) and len(count) == 1:
        return whole(boundary, params, TopK(k=count[0], axis=axis, largest=largest))
    return whole(boundary, params, TopK(axis=axis, largest=largest), (boundary.name(1),))
