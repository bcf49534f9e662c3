"""Comparisons of codes, and of real values."""

from __future__ import annotations

import numpy as np

from intonnx.ir.graph import Node
from intonnx.ir.ops.compare import Compare
from intonnx.ir.quantization import all_codes, dequantize_array
from intonnx.ir.types import DType, QuantParams

from ._binary import reals
from .emitter import Emitter
from .registry import emitters

_NAMES = {
    "equal": "Equal",
    "less": "Less",
    "less_or_equal": "LessOrEqual",
    "greater": "Greater",
    "greater_or_equal": "GreaterOrEqual",
}


@emitters.register(Compare)
def compare(op: Compare, node: Node, out: Emitter) -> None:
    """On the codes where these are in the order of the real values, else behind DQ."""
    a, b = (out.type(name) for name in node.operands)
    if out.qlinear and a.quant is not None and a.quant == b.quant and _is_ordered(a.quant):
        operands = [out.operand(name) for name in node.operands]
    else:
        operands = reals(node, out)
    out.node(_NAMES[op.relation], operands, node.results)


def _is_ordered(params: QuantParams) -> bool:
    """Whether different codes of 8 or 16 bits have different real values, in the same order."""
    if not params.per_tensor or params.storage not in (DType.U8, DType.I8, DType.U16, DType.I16):
        return False
    real = dequantize_array(np.sort(all_codes(params)), params).astype(np.float32)
    return bool(np.all(real[:-1] < real[1:]))
