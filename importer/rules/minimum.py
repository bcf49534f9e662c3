"""Min and Max."""

from __future__ import annotations

import numpy as np

from intonnx.importer.qdq.boundary import Boundary
from intonnx.importer.qdq.table import table_of
from intonnx.importer.registry import quantizes
from intonnx.ir.graph import Refusal
from intonnx.ir.ops.minimum import Maximum, Minimum
from intonnx.ir.reasons import Code
from intonnx.ir.types import QuantParams

from ._selection import quantize_selection


@quantizes("Min", "Max", lifts=True)
def quantize_extreme(boundary: Boundary) -> Refusal | None:
    """Of one tensor and scalars it is a table; else of codes, whose order is that of the values."""
    if table_of(boundary) is None:
        return None
    indices = range(len(boundary.node.operands))
    for index in indices:
        constant = boundary.constant(index)
        if constant is not None and np.any(np.isnan(constant)):
            return Refusal(
                code=Code.UNSUPPORTED_ATTRIBUTE,
                detail=f"the constant '{boundary.name(index)}' holds NaN, which has no place in "
                "the order of codes: replace it",
            )
    op_class = Minimum if boundary.op.op_type == "Min" else Maximum

    def make(out: QuantParams | None) -> Minimum | Maximum:
        return op_class(out=out)

    return quantize_selection(boundary, indices, make)
