"""QLinearAdd, and Add and Sub between DQ and Q."""

from __future__ import annotations

from intonnx.ir.graph import Node
from intonnx.ir.ops.add import Add, Subtract
from intonnx.lowering.binary import qlinear_add_fits
from intonnx.lowering.shaping.kernel_sums import KernelAdd

from ._binary import between, qlinear
from .emitter import Emitter
from .registry import emitters


@emitters.register(Add)
def add(op: Add, node: Node, out: Emitter) -> None:
    """QLinearAdd of com.microsoft where its kernel takes the types, else DQ -> Add -> Q."""
    a, b = (out.type(name) for name in node.operands)
    if out.contrib and qlinear_add_fits(a, b, op.out):
        qlinear("QLinearAdd", node, out)
    else:
        between("Add", node, out)


@emitters.register(KernelAdd)
def kernel_add(op: KernelAdd, node: Node, out: Emitter) -> None:
    """QLinearAdd with the scales that its kernel is to have."""
    qlinear("QLinearAdd", node, out, op.scales)


@emitters.register(Subtract)
def subtract(op: Subtract, node: Node, out: Emitter) -> None:
    """DQ -> Sub -> Q: no QLinear operator exists."""
    between("Sub", node, out)
