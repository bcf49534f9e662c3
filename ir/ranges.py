"""Accumulator ranges: what a sum can reach, proven from the actual weights.

For each accumulating operator with constant weights and each of its channels: the smallest and the
largest value of the accumulator, whether 32 bits hold it, and whether an 8-bit CPU that adds
pairs of products in int16 (x86 without VNNI) could saturate.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from .graph import Graph, Node
from .op import optional_operand
from .ops.conv import Conv
from .ops.dense import MatrixProduct
from .types import Array, DType, Record, TensorType

INT16_MAX = 32767


class AccumulatorRange(Record):
    """The proven range of one accumulator.

    Attributes:
        name: the node of the imported model, or the accumulator's name.
        value: the accumulator's name in the graph.
        low, high: the bounds for each output channel, bias included.
        int32_overflow: for each channel, whether the bounds leave int32: it is computed wider.
        int16_saturation: for each channel, whether a pair of products of raw u8 and s8 codes can
            leave int16.
    """

    name: str
    value: str
    low: tuple[int, ...]
    high: tuple[int, ...]
    int32_overflow: tuple[bool, ...]
    int16_saturation: tuple[bool, ...]


def accumulator_ranges(graph: Graph) -> tuple[AccumulatorRange, ...]:
    """The range of every accumulator whose weights and bias are constant, in graph order."""
    found = (_range(graph, node) for node in graph.nodes)
    return tuple(entry for entry in found if entry is not None)


def _range(graph: Graph, node: Node) -> AccumulatorRange | None:
    weights = constant_weights(graph, node)
    if weights is None:
        return None
    x, sums, raw = weights
    low_x, high_x = _centred_limits(x)
    low = np.minimum(sums * low_x, sums * high_x).sum(axis=0)
    high = np.maximum(sums * low_x, sums * high_x).sum(axis=0)
    name = optional_operand(node.operands, 2)
    if name:
        bias = graph.constants.get(name)
        if bias is None:
            return None
        per_channel = np.broadcast_to(bias.astype(np.int64), (*bias.shape[:-1], low.size))
        low = low + per_channel.reshape(-1, low.size).min(axis=0)
        high = high + per_channel.reshape(-1, low.size).max(axis=0)
    overflow = (low < DType.I32.low) | (high > DType.I32.high)
    return AccumulatorRange(
        name=node.sources[0].name if node.sources else node.results[0],
        value=node.results[0],
        low=tuple(low.tolist()),
        high=tuple(high.tolist()),
        int32_overflow=tuple(overflow.tolist()),
        int16_saturation=tuple(saturating_sums(raw, x).tolist()),
    )


def _centred_limits(x: TensorType) -> tuple[int, int]:
    """The smallest and largest code minus zero point; padding adds 0, which lies between."""
    if x.quant is None:
        width = x.dtype.high - x.dtype.low
        return -width, width
    zero = x.quant.scalar_zero_point
    return min(0, x.quant.qmin - zero), max(0, x.quant.qmax - zero)


def constant_weights(graph: Graph, node: Node) -> tuple[TensorType, Array, Array] | None:
    """The activation's type, then centred and raw weight codes as [reduction, channels] int64.

    None for operators that do not accumulate, or whose weights or zero points are not constant.
    """
    if not isinstance(node.op, Conv | MatrixProduct):
        return None
    w = graph.constants.get(node.operands[1])
    kind = graph.types[node.operands[1]]
    zero_name = optional_operand(node.operands, 4)
    zero = graph.constants.get(zero_name) if zero_name else np.zeros((), np.int64)
    if w is None or zero is None or w.ndim < 2:
        return None
    raw = w.astype(np.int64)
    zeros = np.asarray(zero if kind.quant is None else kind.quant.zero_point).astype(np.int64)
    axes: Sequence[int] = range(1, w.ndim) if isinstance(node.op, Conv) else [w.ndim - 2]
    centred = columns(raw - _aligned(zeros, w.ndim, 0 if len(axes) > 1 else w.ndim - 1), axes)
    x = graph.types[node.operands[0]]
    return x, centred, columns(raw, axes)


def _aligned(zeros: Array, rank: int, axis: int) -> Array:
    return (
        zeros if zeros.size == 1 else zeros.reshape([-1 if i == axis else 1 for i in range(rank)])
    )


def columns(w: Array, reduction_axes: Sequence[int]) -> Array:
    """The weights as [reduction, channels]."""
    first = np.moveaxis(w, reduction_axes, range(len(reduction_axes)))
    return first.reshape(math.prod(first.shape[: len(reduction_axes)]), -1)


def saturating_sums(sums: Array, x: TensorType) -> Array:
    """For each column of raw s8 codes [reduction, channels]: whether a pair can leave int16.

    Only u8 activations `x` are in danger. Which weights of a sum are added as a pair depends on
    the kernel, so the two largest magnitudes of one sign decide.
    """
    if x.dtype is not DType.U8 or sums.size == 0:
        return np.zeros(sums.shape[1], bool)
    x_max = x.dtype.high if x.quant is None else x.quant.qmax
    ordered = np.sort(sums, axis=0)
    highest = np.maximum(ordered[-2:], 0).sum(axis=0)
    lowest = -np.minimum(ordered[:2], 0).sum(axis=0)
    return np.asarray((x_max * highest > INT16_MAX) | (x_max * lowest > INT16_MAX + 1))
