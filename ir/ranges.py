"""Accumulator ranges: what each sum of a graph can reach, proven from the actual weights.

For each accumulating operator and each of its channels: the smallest and the largest value of the
accumulator, whether 32 bits hold it, and whether an 8-bit CPU that adds pairs of products in int16
(x86 without VNNI) could saturate.
"""

from __future__ import annotations

import numpy as np

from .graph import Graph, Node
from .types import DType, Record


class AccumulatorRange(Record):
    """The proven range of one accumulator.

    Attributes:
        name: the node of the imported model, or the accumulator's name.
        op: the operator in the graph, such as `qnn.conv2d`.
        value: the accumulator's name in the graph; the result's where the operator's sum is inside.
        low, high: the bounds for each output channel, bias included; one entry where all channels
            are alike, because the weights are computed at run time.
        int32_overflow: for each channel, whether the bounds leave int32: it is computed wider.
        int16_saturation: for each channel, whether a pair of products of raw u8 and s8 codes can
            leave int16. Exact here; a runtime without VNNI that multiplies these codes is not.
        worst_channel: the channel with the largest magnitude, 0 when there are none.
        bits: bits of the narrowest signed integer that holds every sum.
    """

    name: str
    op: str
    value: str
    low: tuple[int, ...]
    high: tuple[int, ...]
    int32_overflow: tuple[bool, ...]
    int16_saturation: tuple[bool, ...]
    worst_channel: int
    bits: int

    @property
    def worst(self) -> tuple[int, int]:
        """The bounds of the worst channel."""
        index = self.worst_channel
        return (self.low[index], self.high[index]) if self.low else (0, 0)


def accumulator_ranges(graph: Graph) -> tuple[AccumulatorRange, ...]:
    """The range of every accumulator whose length is known, in graph order."""
    found = (_range(graph, node) for node in graph.nodes)
    return tuple(entry for entry in found if entry is not None)


def _range(graph: Graph, node: Node) -> AccumulatorRange | None:
    constants = [graph.constants.get(name) for name in node.operands]
    bounds = node.op.accumulator_bounds(graph.operand_types(node), constants)
    if bounds is None:
        return None
    overflow = (bounds.low < DType.I32.low) | (bounds.high > DType.I32.high)
    # -1 - low is what has to fit beside the sign.
    magnitudes = np.maximum(bounds.high, -1 - bounds.low)
    return AccumulatorRange(
        name=node.sources[0].name if node.sources else node.results[0],
        op=node.op.title,
        value=node.results[0],
        low=tuple(bounds.low.tolist()),
        high=tuple(bounds.high.tolist()),
        int32_overflow=tuple(overflow.tolist()),
        int16_saturation=tuple(bounds.saturates.tolist()),
        worst_channel=int(magnitudes.argmax()) if magnitudes.size else 0,
        bits=int(magnitudes.max(initial=0)).bit_length() + 1,
    )
