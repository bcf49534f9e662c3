"""Einsum of whole numbers, and between DQ and Q."""

from __future__ import annotations

import math

from intonnx.ir.graph import Node
from intonnx.ir.ops.einsum import Einsum
from intonnx.ir.types import DType, static_shape
from intonnx.lowering.reductions import INT32_LIMIT, largest_code
from intonnx.protos import element_of_dtype

from ._accumulator import between, centred
from .emitter import Emitter
from .registry import emitters


@emitters.joins(Einsum)
def join_einsum(op: Einsum, node: Node, consumer: Node, out: Emitter) -> bool:
    """DQ -> Einsum (-> Q) in the QDQ form, and where sums of int32 may overflow."""
    if out.qlinear and _fits(op, node, out):
        return False
    return between(node, consumer, out, "Einsum", equation=op.equation)


@emitters.register(Einsum)
def einsum(op: Einsum, node: Node, out: Emitter) -> None:
    """Einsum of whole numbers: the accumulator itself."""
    fits = _fits(op, node, out)
    wide = DType.I32 if fits else DType.I64
    values = [centred(name, out, wide) for name in node.operands if name]
    if fits:
        out.node("Einsum", values, node.results, equation=op.equation)
        return
    sums = out.value("Einsum", values, f"{node.results[0]}.i64", equation=op.equation)
    out.node("Cast", [sums], node.results, to=element_of_dtype(DType.I32))


def _fits(op: Einsum, node: Node, out: Emitter) -> bool:
    """Whether no sum can leave int32."""
    kinds = [out.type(name) for name in node.operands if name]
    equation = op.expanded(kinds)
    sizes = op.sizes(equation, kinds)
    counts = static_shape([sizes[letter] for letter in equation.summed])
    largest = math.prod(largest_code(kind.params) for kind in kinds)
    return counts is not None and math.prod(counts) * largest < INT32_LIMIT
