"""What the rules of normalizations share: their scale and bias."""

from __future__ import annotations

import numpy as np

from intonnx.importer.qdq.boundary import Boundary
from intonnx.ir.graph import Refusal
from intonnx.ir.reasons import Code
from intonnx.ir.types import Array, DType, plain


def factors(boundary: Boundary, whats: dict[int, str]) -> list[str] | Refusal:
    """The names of constant float32 operands, "" for an absent one.

    `whats` says what the input at each index is for.
    """
    names = []
    for index, what in whats.items():
        array = boundary.needs_constant(index, what) if boundary.has(index) else None
        if isinstance(array, Refusal):
            return array
        names.append("" if array is None else _float32(boundary, index, array))
    return names


def _float32(boundary: Boundary, index: int, array: Array) -> str:
    name = boundary.name(index)
    if name in boundary.rewriter.constants and array.dtype == np.float32:
        return name
    kind = plain(DType.F32, array.shape)
    return boundary.constant_codes(f"{name}.real", array.astype(np.float32), kind)


def statistics_refusal(boundary: Boundary, used: str) -> Refusal:
    """A refusal where the statistics of a normalization are a result that something reads."""
    return Refusal(
        code=Code.UNSUPPORTED_ATTRIBUTE,
        detail=f"'{used}' is read, a float statistic of the normalization: leave it out",
    )
