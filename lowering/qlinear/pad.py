"""Pad on codes, and Pad between DQ and Q."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from intonnx.ir.errors import ExportFailure
from intonnx.ir.graph import Node
from intonnx.ir.ops.pad import Pad
from intonnx.ir.types import Array, QuantParams
from intonnx.protos import element_of_dtype

from .emitter import Emitter
from .registry import emitters

_WRAP_SINCE = 19


@emitters.register(Pad)
def pad(op: Pad, node: Node, out: Emitter) -> None:
    """Pad on integers of 8, 32 or 64 bits (opset 13); other codes on real values, or widened.

    onnxruntime pads no 16-bit or 4-bit integers.
    """
    if op.mode == "wrap" and out.opset < _WRAP_SINCE:
        raise ExportFailure(f"Pad wraps from opset {_WRAP_SINCE} on, the model has {out.opset}")
    kind = out.type(node.operands[0])
    real = None if kind.quant is None else _real_fill(op, kind.params)
    if kind.dtype.bits < 32 and real is not None and not (out.qlinear and kind.dtype.bits == 8):
        pads = out.constant(np.asarray([*op.before, *op.after], np.int64), "pads")
        fill = "" if op.fill is None else out.constant(real, "fill")
        out.between(node, "Pad", [pads, fill], mode=op.mode)
    elif kind.dtype.bits in (8, 32, 64):
        fill = "" if op.fill is None else out.constant(kind.dtype.numpy.type(op.fill), "fill")
        _on_integers(op, out.operand(node.operands[0]), fill, node.results[0], out)
    else:
        wide = out.value(
            "Cast", [out.operand(node.operands[0])], f"{node.results[0]}.i32", to=TensorProto.INT32
        )
        fill = "" if op.fill is None else out.constant(np.asarray(op.fill, np.int32), "fill")
        padded = out.fresh(f"{node.results[0]}.padded")
        _on_integers(op, wide, fill, padded, out)
        out.node("Cast", [padded], node.results, to=element_of_dtype(kind.dtype))


def _on_integers(op: Pad, codes: str, fill: str, result: str, out: Emitter) -> None:
    pads = out.constant(np.asarray([*op.before, *op.after], np.int64), "pads")
    out.node("Pad", [codes, pads, fill], [result], mode=op.mode)


def _real_fill(op: Pad, params: QuantParams) -> Array | None:
    """The real value of the fill, [] in the expressed type; None where channels differ in it."""
    codes = params.zero_point if op.fill is None else np.asarray(op.fill)
    real = np.asarray((codes - params.zero_point).astype(np.float32) * params.scale)
    if params.block is not None or np.any(real != real.flat[0]):
        return None
    return np.asarray(real.flat[0], params.expressed.numpy)
