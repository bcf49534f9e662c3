"""ArgMax and ArgMin: on codes, without a quantizer after them."""

from __future__ import annotations

from intonnx.importer.qdq.boundary import Boundary
from intonnx.importer.registry import quantizes
from intonnx.ir.graph import Refusal
from intonnx.ir.ops.argmax import ArgMax, ArgMin

from ._order import order_refusal


@quantizes("ArgMax", "ArgMin")
def quantize_arg(boundary: Boundary) -> Refusal | None:
    """Scales are positive, so the largest code is where the largest value is."""
    name, kind = boundary.name(0), boundary.type(0)
    if not kind.is_integer:
        x = boundary.needs_activation(0)
        if isinstance(x, Refusal):
            return x
        name, kind = x.name, x.type
        if (refusal := order_refusal(name, x.params)) is not None:
            return refusal
    elif kind.dtype.bits > 16:
        # Shape arithmetic is left to the reference operators.
        return None
    op = (ArgMax if boundary.op.op_type == "ArgMax" else ArgMin)(
        axis=boundary.attribute("axis", 0),
        keepdims=bool(boundary.attribute("keepdims", 1)),
        select_last_index=bool(boundary.attribute("select_last_index", 0)),
    )
    misfit = boundary.misfit(op, [kind])
    if misfit is None:
        boundary.moved([boundary.emit(op, [name], f"{boundary.node.results[0]}.index")])
    return misfit
