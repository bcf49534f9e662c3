"""How far two arrays lie apart, in quanta where they are codes."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from intonnx.ir.graph import Graph, Node
from intonnx.ir.ops.quantize import Dequantize
from intonnx.ir.types import Array, Record

Unit = Literal["quanta", "relative"]


class Difference(Record):
    """How far one value lies from the reference's.

    Attributes:
        value: the value's name.
        node: the operator that made it, as errors name it, after that of its accumulator.
        unit: of `largest` and `limit`.
        largest: the largest difference of an element.
        limit: the largest difference that passes; None where it is not judged.
        differing, elements: how many elements differ, of how many.
        ties: how many of those that differ are ties, of the first few thousand of a sample; None
            where the operator is not analysed.
        sqnr: the signal to quantization noise ratio in dB, of real values; None without noise.
        cosine: of the angle between both as vectors of real values; None where one is zero.
        saturation: the share of our codes at an end of their range that is not zero; None for
            floats.
    """

    value: str
    node: str
    unit: Unit
    largest: float
    limit: float | None
    differing: int
    elements: int
    ties: int | None = None
    sqnr: float | None = None
    cosine: float | None = None
    saturation: float | None = None

    @property
    def passed(self) -> bool:
        """Whether the difference is within its limit; a limit of 0 asks for equal bits."""
        if self.limit is None:
            return True
        return self.differing == 0 if self.limit == 0 else self.largest <= self.limit


def difference(graph: Graph, node: Node, ours: Array, theirs: Array) -> tuple[Unit, float, int]:
    """Compare two arrays for a result of a node.

    Returns the unit, the largest difference in it and the number of elements that differ. Another
    shape, or a NaN on one side only, is an infinite difference.
    """
    quantum = _quantum(graph, node, ours.ndim)
    unit: Unit = "relative" if quantum is None else "quanta"
    if ours.shape != theirs.shape:
        return unit, float("inf"), ours.size
    equal = np.asarray(ours == theirs)
    if ours.dtype.kind not in "biuO":
        equal = equal | ((ours != ours) & (theirs != theirs))
    differing = int(np.count_nonzero(~equal))
    if differing == 0:
        return unit, 0.0, 0
    if ours.dtype == object:
        return unit, float("inf"), differing
    if quantum is None:
        magnitudes = np.abs(_wide(theirs))
        quantum = float(magnitudes[np.isfinite(magnitudes)].max(initial=0)) or 1.0
    apart = np.where(equal, 0, _apart(ours, theirs) / quantum)
    # Codes that are one apart are not one scale apart to the last bit after a float product.
    return unit, float(np.max(apart if unit == "relative" else np.round(apart, 3))), differing


def _apart(ours: Array, theirs: Array) -> Array:
    with np.errstate(all="ignore"):
        apart = np.abs(_wide(ours) - _wide(theirs))
    return np.asarray(np.where(np.isnan(apart), np.inf, apart))


def _wide(array: Array) -> Array:
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def _quantum(graph: Graph, node: Node, rank: int) -> Any:
    """What one quantum of the node's result is, or None for a float that has none."""
    result = next(name for name in node.results if name)
    if not graph.types[result].dtype.is_float:
        return 1.0
    if isinstance(node.op, Dequantize):
        params = graph.types[node.operands[0]].quant
        # An accumulator's scale is far below what a float operator resolves.
        if params is not None and params.storage.bits <= 16 and params.block is None:
            return params.along(rank)[0].astype(np.float64)
    return None
