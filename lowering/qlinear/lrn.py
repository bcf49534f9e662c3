"""LRN between DQ and Q."""

from __future__ import annotations

from intonnx.ir.graph import Node
from intonnx.ir.ops.lrn import LocalResponseNorm

from .emitter import Emitter
from .registry import emitters


@emitters.register(LocalResponseNorm)
def lrn(op: LocalResponseNorm, node: Node, out: Emitter) -> None:
    """LRN."""
    out.between(node, "LRN", size=op.size, alpha=op.alpha, beta=op.beta, bias=op.bias)
