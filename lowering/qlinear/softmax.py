"""Softmax: QLinearSoftmax, or Softmax between DequantizeLinear and QuantizeLinear."""

from __future__ import annotations

from intonnx.ir.graph import Node
from intonnx.ir.ops.softmax import Softmax
from intonnx.ir.types import DType

from .emitter import CONTRIB, Emitter
from .registry import emitters


@emitters.register(Softmax)
def softmax(op: Softmax, node: Node, out: Emitter) -> None:
    """QLinearSoftmax takes 8-bit codes of one type; its `opset` says what the axis means."""
    x = out.params(node.operands[0])
    if (
        out.contrib
        and not op.logarithm
        and op.out.storage is x.storage
        and x.storage in (DType.U8, DType.I8)
        and x.expressed is op.out.expressed is DType.F32
    ):
        inputs = [*out.quantized_operand(node.operands[0]), *out.quantization(op.out)]
        opset = 12 if op.flattened else 13
        out.node("QLinearSoftmax", inputs, node.results, domain=CONTRIB, axis=op.axis, opset=opset)
        return
    op_type = "LogSoftmax" if op.logarithm else "Softmax"
    if op.flattened:
        _flattened(op, op_type, node, out)
    else:
        out.between(node, op_type, axis=op.axis)


def _flattened(op: Softmax, op_type: str, node: Node, out: Emitter) -> None:
    """The opset written is 13 or newer, where a row is one axis: make the rows one axis."""
    result = node.results[0]
    real = out.real(node.operands[0])
    shape = out.value("Shape", [real], f"{result}.shape")
    rows = out.value("Flatten", [real], f"{result}.rows", axis=op.axis)
    found = out.value(op_type, [rows], f"{result}.softmax", axis=1)
    shaped = out.value("Reshape", [found, shape], f"{result}.unquantized")
    out.quantize(shaped, op.out, result)
