"""TopK on codes."""

from __future__ import annotations

from typing import Any

import numpy as np

from intonnx.ir.graph import Node
from intonnx.ir.ops.top_k import TopK
from intonnx.ir.types import DType

from .emitter import Emitter
from .registry import emitters

_KERNELS = frozenset({DType.U8, DType.I8, DType.I16})
"""What TopK of onnxruntime 1.32 takes."""


@emitters.register(TopK)
def top_k(op: TopK, node: Node, out: Emitter) -> None:
    """On codes where there is a kernel, else on their real values, which have the same order."""
    codes, values = node.operands[0], node.results[0]
    # The checker wants a name for both results.
    indices = [*node.results, ""][1] or out.fresh(f"{values}.indices")
    kind = out.type(codes)
    has_kernel = kind.dtype in _KERNELS or out.runtime == "standard"
    k = out.operand(node.operands[1]) if op.k is None else out.constant(np.asarray([op.k]), "k")
    attributes: dict[str, Any] = {"axis": op.axis, "largest": int(op.largest)}
    if kind.quant is None or (out.qlinear and has_kernel):
        results = [values or out.fresh(f"{indices}.values"), indices]
        return out.node("TopK", [out.operand(codes), k], results, **attributes)
    real = out.fresh(f"{values or indices}.unquantized")
    out.node("TopK", [out.real(codes), k], [real, indices], **attributes)
    if values:
        out.quantize(real, kind.quant, values)
    return None
