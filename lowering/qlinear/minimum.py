"""Min and Max on codes, and between DQ and Q."""

from __future__ import annotations

from intonnx.ir.graph import Node
from intonnx.ir.ops.minimum import Maximum, Minimum
from intonnx.ir.types import DType

from ._selection import select
from .emitter import Emitter
from .registry import emitters

_KERNELS = (DType.U8, DType.I8)


@emitters.register(Minimum, Maximum)
def extreme(op: Minimum | Maximum, node: Node, out: Emitter) -> None:
    """On 8-bit codes with the parameters of the result, else on real values."""
    op_type = "Min" if isinstance(op, Minimum) else "Max"
    select(op_type, node, out, op.out, range(len(node.operands)), kernels=_KERNELS)
