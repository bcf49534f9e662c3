"""ArgMax and ArgMin on codes."""

from __future__ import annotations

from intonnx.ir.graph import Node
from intonnx.ir.ops.argmax import ArgMax, ArgMin
from intonnx.ir.types import DType

from .emitter import Emitter
from .registry import emitters

_KERNELS = frozenset({DType.U8, DType.I8})
"""What ArgMax of onnxruntime 1.32 takes."""


@emitters.register(ArgMax, ArgMin)
def arg(op: ArgMax | ArgMin, node: Node, out: Emitter) -> None:
    """On codes where there is a kernel, else on their real values, which have the same order."""
    codes = node.operands[0]
    kind = out.type(codes)
    has_kernel = kind.dtype in _KERNELS or out.runtime == "standard"
    on_codes = kind.quant is None or (out.qlinear and has_kernel)
    out.node(
        type(op).__name__,
        [out.operand(codes) if on_codes else out.real(codes)],
        node.results,
        axis=op.axis,
        keepdims=int(op.keepdims),
        select_last_index=int(op.select_last_index) or None,
    )
