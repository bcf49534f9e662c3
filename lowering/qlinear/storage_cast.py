"""Codes with other parameters in the type: ONNX types have none, so only limits are written."""

from __future__ import annotations

from intonnx.ir.graph import Node
from intonnx.ir.ops.onnx_op import OnnxOp
from intonnx.ir.ops.storage_cast import StorageCast

from .emitter import Emitter
from .registry import emitters


@emitters.register(StorageCast)
def storage_cast(op: StorageCast, node: Node, out: Emitter) -> None:
    """Another name for the same codes; an Identity where the name itself is needed.

    A Clip of integers where codes can lie beyond a narrower range: Q -> Clip -> DQ.
    """
    source, result = node.operands[0], node.results[0]
    limits = op.limits(out.type(source))
    if limits is not None:
        out.limit(out.operand(source), limits, out.type(source).dtype, result)
        return
    kept = any(isinstance(user.op, OnnxOp) for user in out.graph.users.get(result, ()))
    if kept or result in out.graph.outputs:
        out.node("Identity", [out.operand(source)], [result])
    else:
        out.alias(result, source)
