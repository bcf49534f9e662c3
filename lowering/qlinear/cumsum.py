"""CumSum of whole numbers, and between DQ and Q."""

from __future__ import annotations

from typing import Any

import numpy as np

from intonnx.ir.graph import Node
from intonnx.ir.ops.cumsum import CumSum
from intonnx.ir.types import DType
from intonnx.lowering.reductions import fits_int32
from intonnx.protos import element_of_dtype

from ._accumulator import between, centred
from .emitter import Emitter
from .registry import emitters


@emitters.joins(CumSum)
def join_cumsum(op: CumSum, node: Node, consumer: Node, out: Emitter) -> bool:
    """DQ -> CumSum (-> Q) in the QDQ form, and where sums of int32 may overflow."""
    if out.qlinear and _fits(op, node, out):
        return False
    return between(node, consumer, out, "CumSum", [_axis(op, out)], **_attributes(op))


@emitters.register(CumSum)
def cumsum(op: CumSum, node: Node, out: Emitter) -> None:
    """CumSum of whole numbers: the accumulator itself."""
    if _fits(op, node, out):
        inputs = [centred(node.operands[0], out, DType.I32), _axis(op, out)]
        out.node("CumSum", inputs, node.results, **_attributes(op))
        return
    inputs = [centred(node.operands[0], out, DType.I64), _axis(op, out)]
    wide = out.value("CumSum", inputs, f"{node.results[0]}.i64", **_attributes(op))
    out.node("Cast", [wide], node.results, to=element_of_dtype(DType.I32))


def _fits(op: CumSum, node: Node, out: Emitter) -> bool:
    x = out.type(node.operands[0])
    return x.shape is not None and fits_int32(x, (x.shape[op.axis],))


def _axis(op: CumSum, out: Emitter) -> str:
    return out.constant(np.asarray(op.axis, np.int64), "axis")


def _attributes(op: CumSum) -> dict[str, Any]:
    return {"exclusive": int(op.exclusive) or None, "reverse": int(op.reverse) or None}
