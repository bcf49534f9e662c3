"""ScatterND and ScatterElements on codes, and between DQ and Q."""

from __future__ import annotations

from intonnx.ir.graph import Node
from intonnx.ir.ops.scatter_nd import ScatterElements, ScatterNd

from ._mover import WHOLE_BYTES
from ._selection import select
from .emitter import Emitter
from .registry import emitters

_DATA = (0, 2)


@emitters.register(ScatterNd)
def scatter_nd(op: ScatterNd, node: Node, out: Emitter) -> None:
    """ScatterND."""
    select("ScatterND", node, out, op.out, _DATA, kernels=WHOLE_BYTES)


@emitters.register(ScatterElements)
def scatter_elements(op: ScatterElements, node: Node, out: Emitter) -> None:
    """ScatterElements."""
    select("ScatterElements", node, out, op.out, _DATA, kernels=WHOLE_BYTES, axis=op.axis)
