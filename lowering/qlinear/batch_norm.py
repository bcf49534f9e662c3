"""A Gather from the tables of all channels, or BatchNormalization between DQ and Q."""

from __future__ import annotations

import numpy as np
import onnx

from intonnx.ir.graph import Node
from intonnx.ir.ops.batch_norm import BatchNorm
from intonnx.lowering.normalization import channel_tables

from ._table import entries
from .emitter import Emitter
from .registry import emitters


@emitters.register(BatchNorm)
def batch_norm(op: BatchNorm, node: Node, out: Emitter) -> None:
    """Tables are exact, and integer."""
    x = out.type(node.operands[0])
    known = all(name in out.graph.constants for name in node.operands[1:])
    tables = x.dtype.bits == 8 and op.out.storage.bits >= 8 and x.params.axis in (None, 1)
    if out.qlinear and known and tables:
        return _gather(op, node, out)
    others = [out.operand(name) for name in node.operands[1:]]
    return out.between(
        node, "BatchNormalization", others, operands=node.operands[:1], epsilon=op.epsilon
    )


def _gather(op: BatchNorm, node: Node, out: Emitter) -> None:
    codes, result = node.operands[0], node.results[0]
    kind = out.type(codes)
    statistics = [out.graph.constants[name] for name in node.operands[1:]]
    tables = channel_tables(op, kind.params, statistics)
    # In the order of the codes: a negative one is to find its place by addition too.
    ordered = np.roll(tables, -kind.dtype.low, axis=1)
    rows = np.arange(len(tables), dtype=np.int32) * tables.shape[1] - kind.dtype.low
    rows = rows.reshape(-1, *[1] * ((kind.rank or 2) - 2))
    wide = out.value("Cast", [out.operand(codes)], f"{result}.wide", to=onnx.TensorProto.INT32)
    index = out.value("Add", [wide, out.constant(rows, "rows")], f"{result}.index")
    entries(index, kind, out.constant(ordered.reshape(-1), f"{result}.tables"), result, out)
