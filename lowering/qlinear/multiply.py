"""QLinearMul, and Mul between DQ and Q."""

from __future__ import annotations

from intonnx.ir.graph import Node
from intonnx.ir.ops.multiply import Multiply
from intonnx.lowering.binary import qlinear_multiply_fits
from intonnx.lowering.shaping.kernel_sums import KernelMultiply

from ._binary import between, qlinear
from .emitter import Emitter
from .registry import emitters


@emitters.register(Multiply)
def multiply(op: Multiply, node: Node, out: Emitter) -> None:
    """QLinearMul of com.microsoft where its kernel takes the types, else DQ -> Mul -> Q."""
    a, b = (out.type(name) for name in node.operands)
    if out.contrib and qlinear_multiply_fits(a, b, op.out):
        qlinear("QLinearMul", node, out)
    else:
        between("Mul", node, out)


@emitters.register(KernelMultiply)
def kernel_multiply(op: KernelMultiply, node: Node, out: Emitter) -> None:
    """QLinearMul with the scales that its kernel is to have."""
    qlinear("QLinearMul", node, out, op.scales)
