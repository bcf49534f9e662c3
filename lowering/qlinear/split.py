"""Split on codes."""

from __future__ import annotations

import numpy as np

from intonnx.ir.errors import ExportFailure
from intonnx.ir.graph import Node
from intonnx.ir.ops.split import Split

from ._mover import move
from .emitter import Emitter
from .registry import emitters


@emitters.register(Split)
def split(op: Split, node: Node, out: Emitter) -> None:
    """Split, the sizes as an input (opset 13); from opset 18 on a number of parts is written."""
    sizes = op.sizes
    shape = out.type(node.operands[0]).shape
    if sizes is None and shape is not None and isinstance(size := shape[op.axis], int):
        sizes = tuple(op.sizes_of(size))
    if sizes is not None:
        given = out.constant(np.asarray(sizes, np.int64), "sizes")
        move("Split", node, out, [given], axis=op.axis)
    elif out.opset >= 18:
        move("Split", node, out, axis=op.axis, num_outputs=op.parts)
    elif len(node.results) == op.parts:
        move("Split", node, out, axis=op.axis)
    else:
        raise ExportFailure(f"{op.parts} parts for {len(node.results)} results")
