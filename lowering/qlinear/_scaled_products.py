"""MatMulIntegerToFloat: an integer product whose sums are multiplied by scales, plus a bias."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from intonnx.ir.graph import Node
from intonnx.ir.ops.quantize import Dequantize
from intonnx.ir.types import Array, DType, TensorType

from .emitter import CONTRIB, Emitter

RightSide = Callable[[Node, Emitter], list[str]]
"""From a product of codes with parameters to codes, scale and zero point of its right side."""
PlainRightSide = Callable[[Node, Emitter], tuple[str, str]]
"""From a product of plain integers to codes and zero point of its right side."""


def matmul_integer_to_float(
    node: Node, consumer: Node, right: RightSide, plain_right: PlainRightSide, out: Emitter
) -> bool:
    """Write a matrix product and the dequantize of its sums as one, where the kernel takes them."""
    result, op = out.type(consumer.results[0]), consumer.op
    fits = isinstance(op, Dequantize) and not op.in_turn and result.dtype is DType.F32
    if not (out.contrib and fits) or [*node.operands, ""][2] or not _has_kernel(node, out):
        return False
    _, first, second, bias = [*consumer.operands, "", "", ""][:4]
    row = _bias(bias, out.type(node.operands[1]), out)
    if row is None:
        return False
    if out.type(node.operands[0]).quant is not None:
        a, a_scale, a_zero = out.quantized_operand(node.operands[0])
        b, b_scale, b_zero = right(node, out)
    else:
        scales, zeros = _scales(first, second, node, out), [*node.operands, "", ""][3:5]
        if scales is None or not _zeros_fit(zeros, node, out):
            return False
        a, a_zero = out.operand(node.operands[0]), out.operand(zeros[0]) if zeros[0] else ""
        (a_scale, b_scale), (b, b_zero) = scales, plain_right(node, out)
    inputs = [a, b, a_scale, b_scale, a_zero, b_zero, row]
    out.node("MatMulIntegerToFloat", inputs, consumer.results, domain=CONTRIB)
    return True


def _has_kernel(node: Node, out: Emitter) -> bool:
    """Whether the codes have 8 bits, in a pair of types that is multiplied."""
    a, b = out.type(node.operands[0]).dtype, out.type(node.operands[1]).dtype
    constant = node.operands[1] in out.graph.constants
    narrow = b.bits == 8 or (b.bits < 8 and constant)
    return a.bits == 8 and narrow and (constant or a is DType.U8 or b is DType.I8)


def _scales(first: str, second: str, node: Node, out: Emitter) -> tuple[str, str] | None:
    """The scale of A, which is one number, and that of B, which may be a row of a matrix's."""
    if not second:
        one = out.constant(np.ones((), np.float32), "scale")
        return (one, out.operand(first)) if _is_row(first, node, out) else None
    for a, b in ((first, second), (second, first)):
        if _is_single(out.type(a)) and _is_row(b, node, out):
            return out.operand(a), out.operand(b)
    return None


def _zeros_fit(zeros: list[str], node: Node, out: Emitter) -> bool:
    a, b = zeros
    return (not a or _is_single(out.type(a))) and (not b or _is_row(b, node, out))


def _is_single(kind: TensorType) -> bool:
    return kind.shape is not None and kind.shape in ((), (1,))


def _is_row(name: str, node: Node, out: Emitter) -> bool:
    """Whether a value is one number, or has one for each column of the right side's matrix."""
    kind, matrix = out.type(name), out.type(node.operands[1]).shape or ()
    return _is_single(kind) or (len(matrix) == 2 and kind.shape == matrix[1:])


def _bias(name: str, b: TensorType, out: Emitter) -> str | None:
    """The bias as one number for each column, "" where there is none; None where it is not that."""
    if not name:
        return ""
    columns = b.shape[-1] if b.shape is not None and len(b.shape) > 1 else None
    if not isinstance(columns, int):
        return None
    if out.type(name).shape == (columns,):
        return out.operand(name)
    array: Array | None = out.graph.constants.get(name)
    if array is None or array.size != 1 or array.ndim > 1:
        return None
    return out.constant(np.broadcast_to(array.reshape(()), (columns,)), "bias")
