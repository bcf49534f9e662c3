"""Tell ties from errors: half way between two codes a result goes either way by a float rounding.

What an operator would give without rounding is computed in exact fractions from the operands that
it was fed. Where that lies half way between two codes, as nearly as float32 arithmetic can tell,
each of them is right; any other difference is an error of one side.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction

import numpy as np

from intonnx.ir.graph import Graph, Node
from intonnx.ir.ops.add import Add, Subtract
from intonnx.ir.ops.multiply import Multiply
from intonnx.ir.ops.quantize import Quantize, Requantize
from intonnx.ir.types import Array, QuantParams, TensorType

MOST = 4096
"""How many elements of one result are looked at."""
_ROUNDING = Fraction(1, 2**22)
"""Four roundings to float32, relative to a value: to a float, by two scales, and of a sum."""

_Join = Callable[[Fraction, Fraction], Fraction]
_JOINS: dict[type, _Join] = {
    Add: lambda a, b: a + b,
    Subtract: lambda a, b: a - b,
    Multiply: lambda a, b: a * b,
}


def ties_among(
    graph: Graph, node: Node, operands: Mapping[str, Array], result: Array, differing: Array
) -> int | None:
    """How many of the differing elements of a result are ties.

    Args:
        graph: the graph, for types and constants.
        node: the operator that makes the codes; of a sum it is the requantize.
        operands: the values of its operands.
        result: the codes, whose shape the operands broadcast to.
        differing: bool, where the two sides differ.

    None for operators that are not analysed: tables, pools, normalizations, floats.
    """
    out = getattr(node.op, "out", None)
    known = isinstance(node.op, Quantize | Requantize) or type(node.op) in _JOINS
    if not known or not isinstance(out, QuantParams) or out.block is not None:
        return None
    places = np.flatnonzero(differing)[:MOST]
    reals: list[list[Fraction | None]] = []
    for name in node.operands:
        values = operands.get(name, graph.constants.get(name))
        part = _reals(graph.types[name], values, result.shape, places)
        if part is None:
            return None
        reals.append(part)
    scales = _at(out.along(result.ndim)[0], result.shape, places)
    ties = 0
    for scale, *parts in zip(scales, *reals, strict=True):
        finite = [part for part in parts if part is not None]
        if len(finite) == len(parts):
            whole = finite[0] if len(finite) == 1 else _JOINS[type(node.op)](*finite)
            ties += is_tie(whole / Fraction(float(scale)))
    return ties


def is_tie(quanta: Fraction) -> bool:
    """Whether a value in quanta is half way between two whole numbers but for float roundings."""
    distance = abs(quanta - (quanta.__floor__() + Fraction(1, 2)))
    return distance <= _ROUNDING * max(abs(quanta), Fraction(1))


def _reals(
    kind: TensorType, values: Array | None, shape: tuple[int, ...], places: Array
) -> list[Fraction | None] | None:
    """The exact real values of an operand at these places; None for what is not finite."""
    if values is None or values.ndim > len(shape):
        return None
    codes = _at(values, shape, places)
    if kind.quant is None:
        if not kind.dtype.is_float:
            return None
        return [Fraction(float(v)) if np.isfinite(v) else None for v in codes]
    if kind.quant.block is not None:
        return None
    scale, zero = kind.quant.along(values.ndim)
    scales, zeros = _at(scale, shape, places), _at(zero, shape, places)
    whole = codes.astype(np.int64) - zeros
    return [
        Fraction(int(whole[index])) * Fraction(float(scales[index])) for index in range(whole.size)
    ]


def _at(array: Array, shape: tuple[int, ...], places: Array) -> Array:
    broadcast: Array = np.broadcast_to(array, shape).reshape(-1)
    return broadcast[places]
