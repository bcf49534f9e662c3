"""QLinearConv, ConvInteger, and Conv between DQ and Q."""

from __future__ import annotations

from typing import Any

import numpy as np

from intonnx.ir.graph import Node
from intonnx.ir.ops.conv import Conv, Conv1d, Conv2d, Conv3d
from intonnx.ir.ops.quantize import Requantize
from intonnx.ir.types import DType

from .emitter import Emitter
from .registry import emitters
from .saturation import exact_weights


def attributes(op: Conv) -> dict[str, Any]:
    """The attributes of an ONNX convolution."""
    explicit = op.auto_pad == "NOTSET"
    return {
        "strides": op.strides,
        "dilations": op.dilations,
        "group": op.groups,
        "pads": op.pads if explicit else None,
        "auto_pad": None if explicit else op.auto_pad,
    }


@emitters.joins(Conv1d, Conv2d, Conv3d)
def join_conv(op: Conv, node: Node, consumer: Node, out: Emitter) -> bool:
    """QLinearConv with a requantize to 8 bits; in the QDQ form DQ -> Conv (-> Q)."""
    x, w = out.params(node.operands[0]), out.params(node.operands[1])
    result = consumer.results[0]
    requantized = isinstance(consumer.op, Requantize)
    eight_bit = x.storage.bits == w.storage.bits == 8 and _has_kernel(x.storage, w.storage)
    uniform = w.per_tensor or bool(np.all(w.zero_point == w.zero_point.flat[0]))
    if out.qlinear and not (eight_bit and uniform):
        return _between(op, node, consumer, out)
    if not out.qlinear:
        return _between(op, node, consumer, out)
    if not requantized or consumer.op.out.storage is not x.storage:  # type: ignore[attr-defined]
        return False
    bias = [*node.operands, ""][2]
    out.node(
        "QLinearConv",
        [
            *out.quantized_operand(node.operands[0]),
            *exact_weights(node, 1, 0, out),
            *out.quantization(out.params(result)),
            out.operand(bias) if bias else "",
        ],
        [result],
        **attributes(op),
    )
    return True


def _has_kernel(x: DType, w: DType) -> bool:
    return x is DType.U8 or w is DType.I8


def _between(op: Conv, node: Node, consumer: Node, out: Emitter) -> bool:
    bias = [*node.operands, ""][2]
    inputs = [out.real(node.operands[0]), out.real(node.operands[1])]
    result = consumer.results[0]
    if bias:
        inputs.append(out.real_bias(bias, out.params(node.results[0])))
    if isinstance(consumer.op, Requantize):
        real = out.value("Conv", inputs, f"{result}.unquantized", **attributes(op))
        out.quantize(real, consumer.op.out, result)
    else:
        out.node("Conv", inputs, [result], **attributes(op))
    return True


@emitters.register(Conv1d, Conv2d, Conv3d)
def conv(op: Conv, node: Node, out: Emitter) -> None:
    """ConvInteger and an integer addition of the bias: the accumulator itself."""
    names = [*node.operands, "", "", "", ""]
    result = node.results[0]
    x, x_zero = out.unsigned(names[0], names[3])
    w, w_zero = out.operand(names[1]), out.zero_point_operand(names[1], names[4])
    if not names[2]:
        out.node("ConvInteger", [x, w, x_zero, w_zero], [result], **attributes(op))
        return
    sums = out.value("ConvInteger", [x, w, x_zero, w_zero], f"{result}.sum", **attributes(op))
    rank = len(out.type(names[0]).shape or ())
    bias = out.graph.constants.get(names[2])
    if bias is None:
        shape = out.constant(np.asarray([-1, *[1] * (rank - 2)], np.int64), "shape")
        column = out.value("Reshape", [out.operand(names[2]), shape], f"{result}.bias")
    else:
        column = out.constant(bias.reshape(-1, *[1] * (rank - 2)), f"{names[2]}.column")
    out.node("Add", [sums, column], [result])
