"""Ending a rule whose operator has constraints on the parameters of its result."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from intonnx.importer.qdq.boundary import Boundary
from intonnx.ir.graph import Refusal, Source
from intonnx.ir.op import Op
from intonnx.ir.types import QuantParams


def produced(
    boundary: Boundary,
    make: Callable[[QuantParams], Op],
    operands: Sequence[str],
    *,
    sources: Sequence[Source] | None = None,
) -> Refusal | None:
    """`Boundary.produced`, or a refusal where an operand or the result's parameters do not fit."""
    kinds = [boundary.rewriter.types[name] if name else None for name in operands]
    for out in boundary.quantizer_params():
        misfit = boundary.misfit(make(out), kinds)
        if misfit is not None:
            return misfit
    return boundary.produced(make, operands, sources=sources)
