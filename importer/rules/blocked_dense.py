"""MatMul and Gemm with weights that are quantized in blocks."""

from __future__ import annotations

from intonnx.importer.qdq.boundary import Boundary, Quantized
from intonnx.ir.graph import Refusal
from intonnx.ir.ops.blocked_dense import BlockedDense
from intonnx.ir.reasons import Code


def blocked_product(
    boundary: Boundary, a: Quantized, b: Quantized, *, addend: bool
) -> Refusal | None:
    """An exact sum for each block of rows of `b`, all in one operator for each quantizer.

    Refuses blocks along another axis, weights that are not constant, and an addend C.
    """
    if b.params.axis != 0 or b.type.rank != 2 or b.codes is None or addend:
        return Refusal(
            code=Code.BLOCKED_INPUT,
            detail=f"'{b.name}' has a scale for each {b.params.block} elements along axis "
            f"{b.params.axis}: a constant matrix in blocks along the axis that is summed over, "
            "without an addend C, is integer; else quantize it per tensor or per column",
        )
    for params in boundary.quantizer_params():
        misfit = boundary.misfit(BlockedDense(out=params), [a.type, b.type])
        if misfit is not None:
            return misfit
    return boundary.produced(lambda out: BlockedDense(out=out), [a.name, b.name])
