"""QLinearConv, ConvInteger, and Conv between DQ and Q."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from intonnx.ir.graph import Node
from intonnx.ir.ops.conv import Conv, Conv1d, Conv2d, Conv3d
from intonnx.ir.types import Array, TensorType

from ._accumulator import between
from .emitter import Emitter
from .registry import emitters
from .saturation import exact_codes, note_scales, note_storage


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
    if not out.qlinear or not _integer_operator(node, out):
        pairs = _pairs(node, out)
        return between(node, consumer, out, "Conv", pairs=pairs, **attributes(op))
    x, w, bias = [*node.operands, ""][:3]
    result, kind = out.type(consumer.results[0]), out.type(w)
    kernel = out.type(x).dtype is kind.dtype or w in out.graph.constants
    fits = result.dtype is out.type(x).dtype and (result.quant is None or result.quant.per_tensor)
    if not (kernel and fits):
        return False
    codes, zeros = _weights(node, out)
    # The kernel wants as many zero points as scales.
    zero = out.constant(np.broadcast_to(zeros, kind.params.scale.shape), "zero_point")
    out.node(
        "QLinearConv",
        [
            *out.quantized_operand(x),
            *(codes, out.kernel_scale(kind.params), zero),
            *out.quantization(result.params),
            out.operand(bias) if bias else "",
        ],
        consumer.results,
        **attributes(op),
    )
    return True


def _integer_operator(node: Node, out: Emitter) -> bool:
    """Whether the integer kernels take these types: one zero point serves all 8-bit weights."""
    x, w = out.type(node.operands[0]), out.type(node.operands[1])
    constant = out.graph.constants.get(node.operands[1])
    if x.dtype.bits != 8 or w.dtype.bits > 8 or (w.dtype.bits < 8 and constant is None):
        return False
    return _uniform(w.params.zero_point) or (
        constant is not None and _aligned(constant, w, x) is not None
    )


def _uniform(zeros: Array) -> bool:
    return bool(np.all(zeros == zeros.reshape(-1)[:1]))


def _weights(node: Node, out: Emitter) -> tuple[str, Array]:
    """Quantized weights and their one zero point, as the kernels of onnxruntime take them."""
    name = node.operands[1]
    kind, constant = out.type(name), out.graph.constants.get(name)
    zeros = kind.params.zero_point
    if _uniform(zeros) or constant is None:
        codes, moved = exact_codes(node, 1, _pairs(node, out), out)
        assert moved is not None
        return codes, moved.reshape(-1)[:1].reshape(()) if _uniform(moved) else moved
    aligned = _aligned(constant, kind, out.type(node.operands[0]))
    if aligned is None:
        return out.operand(name), zeros.astype(kind.dtype.numpy)
    codes = out.constant(aligned[0], f"{name}.aligned")
    note_storage(codes, name, kind.dtype, zeros, out)
    return codes, aligned[1]


def _pairs(node: Node, out: Emitter) -> Sequence[int]:
    """The axes of the weights along which the kernel may add products in pairs.

    That of depthwise convolutions adds none, and is faster with s8 weights.
    """
    assert isinstance(node.op, Conv)
    shape = out.type(node.operands[1]).shape or ()
    depthwise = node.op.groups > 1 and shape[:2] == (node.op.groups, 1)
    return () if depthwise else range(1, len(shape))


def _aligned(w: Array, kind: TensorType, x: TensorType) -> tuple[Array, Array] | None:
    """The same weights with one zero point for all channels, in the type of `x`, if they fit."""
    zeros = kind.params.zero_point.reshape(-1, *[1] * (w.ndim - 1))
    centred = w.astype(np.int64) - zeros
    low, high = int(centred.min(initial=0)), int(centred.max(initial=0))
    if high - low > x.dtype.high - x.dtype.low:
        return None
    shift = x.dtype.low - low
    return (centred + shift).astype(x.dtype.numpy), np.asarray(shift, x.dtype.numpy)


@emitters.register(Conv1d, Conv2d, Conv3d)
def conv(op: Conv, node: Node, out: Emitter) -> None:
    """ConvInteger and an integer addition of the bias: the accumulator itself."""
    names = [*node.operands, "", "", "", ""]
    result = node.results[0]
    x, x_zero = out.unsigned(names[0], names[3])
    if out.type(names[1]).quant is None:
        w, w_zero = out.operand(names[1]), out.zero_point_operand(names[1], names[4])
    else:
        w, zeros = _weights(node, out)
        if not _uniform(zeros):
            return _sums_by_channel(op, node, out, (x, x_zero), w, zeros)
        w_zero = out.constant(zeros, "zero_point")
        note_scales(node, w, out)
    if not names[2]:
        out.node("ConvInteger", [x, w, x_zero, w_zero], [result], **attributes(op))
        return
    sums = out.value("ConvInteger", [x, w, x_zero, w_zero], f"{result}.sum", **attributes(op))
    _add_bias(node, out, sums)


def _sums_by_channel(
    op: Conv, node: Node, out: Emitter, x: tuple[str, str], codes: str, zeros: Array
) -> None:
    """ConvInteger takes one zero point for all weights: those of channels are subtracted after it.

    sum (x - zx) (w - zw) = sum (x - zx) w - zw * sum (x - zx) 1.
    """
    result, bias = node.results[0], [*node.operands, ""][2]
    kind = out.type(node.operands[1])
    none = out.constant(np.zeros((), zeros.dtype), "zero_point")
    shape = tuple(size if isinstance(size, int) else 0 for size in kind.shape or ())
    ones = out.constant(np.ones(shape, zeros.dtype), "ones")
    plain = out.value("ConvInteger", [x[0], codes, x[1], none], f"{result}.raw", **attributes(op))
    cells = out.value("ConvInteger", [x[0], ones, x[1], none], f"{result}.cells", **attributes(op))
    column = zeros.astype(np.int32).reshape(-1, *[1] * (len(shape) - 2))
    excess = out.value("Mul", [cells, out.constant(column, "zero_points")], f"{result}.excess")
    sums = out.fresh(f"{result}.sum") if bias else result
    out.node("Sub", [plain, excess], [sums])
    if bias:
        _add_bias(node, out, sums)


def _add_bias(node: Node, out: Emitter, sums: str) -> None:
    names, result = node.operands, node.results[0]
    rank = len(out.type(names[0]).shape or ())
    bias = out.graph.constants.get(names[2])
    if bias is None:
        shape = out.constant(np.asarray([-1, *[1] * (rank - 2)], np.int64), "shape")
        column = out.value("Reshape", [out.operand(names[2]), shape], f"{result}.bias")
    else:
        column = out.constant(bias.reshape(-1, *[1] * (rank - 2)), f"{names[2]}.column")
    out.node("Add", [sums, column], [result])
