"""Conv, QLinearConv and ConvInteger."""

from __future__ import annotations

from typing import Any

from intonnx.importer.node_view import NodeView
from intonnx.importer.qdq.bias import accumulator_scale, add_apart, bias_operand
from intonnx.importer.qdq.boundary import Boundary, Quantized
from intonnx.importer.registry import imports, quantizes
from intonnx.ir.graph import Refusal
from intonnx.ir.ops.conv import Conv, Conv1d, Conv2d, Conv3d
from intonnx.ir.ops.quantize import Requantize
from intonnx.ir.ops.transpose import Transpose
from intonnx.ir.reasons import Code
from intonnx.ir.types import TensorType, quantized

from ._weights import kernel_codes, per_channel_refusal

_BY_RANK: dict[int, type[Conv]] = {3: Conv1d, 4: Conv2d, 5: Conv3d}


def conv_op(attribute: dict[str, Any], w: TensorType) -> Conv | None:
    """The convolution for weights of this type; None when the kernel's size is not known."""
    if w.rank not in _BY_RANK or w.shape is None:
        return None
    if not all(isinstance(size, int) for size in w.shape[2:]):
        return None
    n = len(w.shape) - 2
    auto_pad = attribute.get("auto_pad", "NOTSET")
    return _BY_RANK[n + 2](
        strides=attribute.get("strides", (1,) * n),
        pads=attribute.get("pads", (0,) * (2 * n)) if auto_pad == "NOTSET" else (0,) * (2 * n),
        dilations=attribute.get("dilations", (1,) * n),
        groups=attribute.get("group", 1),
        auto_pad=auto_pad,
    )


@quantizes("Conv")
def quantize_conv(boundary: Boundary) -> Refusal | None:
    """Multiply codes into an accumulator; the bias joins it at the accumulator's scale."""
    x, w = boundary.needs_activation(0), _weights(boundary)
    if isinstance(x, Refusal):
        return x
    if isinstance(w, Refusal):
        return w
    op = conv_op(boundary.op.attributes, w.type)
    if op is None or x.type.rank is None:
        return Refusal(
            code=Code.UNSUPPORTED_ATTRIBUTE,
            detail=f"'{x.name}' has rank {x.type.rank}, the weights '{w.name}' have shape "
            f"{w.type.shape}: known ranks 3 to 5 and a known kernel make a convolution",
        )
    scale = accumulator_scale(op, x.type, w.type, 0, f"'{x.name}' and '{w.name}'")
    if isinstance(scale, Refusal):
        return scale
    hint = f"{boundary.node.results[0]}.accumulator"
    bias = bias_operand(boundary, 2, scale, w.type)
    if isinstance(bias, Refusal):
        return add_apart(boundary, 2, bias, lambda: boundary.emit(op, [x.name, w.name, ""], hint),
                         [-1, *[1] * op.spatial])  # fmt: skip
    boundary.accumulated(boundary.emit(op, [x.name, w.name, bias], hint))
    return None


def _weights(boundary: Boundary) -> Quantized | Refusal:
    """Input 1 as codes with one scale, or one for each output channel."""
    w = kernel_codes(boundary, 0)
    if isinstance(w, Refusal) or w.params.axis in (None, 0):
        return w
    return per_channel_refusal(w, 0)


@imports("QLinearConv", since=10)
@imports("QLinearConv", since=1, domain="com.microsoft")
def qlinear_conv(node: NodeView) -> None:
    """QLinearConv: x, x_scale, x_zero_point, w, w_scale, w_zero_point, y_scale, y_zero_point, B.

    That of com.microsoft can have its channels last, in `x` and the result; its weights never have.
    """
    x_params = node.params(1, 2, node.type(0).dtype, rank=None, axis=None)
    w_params = node.params(4, 5, node.type(3).dtype, rank=node.type(3).rank, axis=0)
    y_params = node.params(6, 7, node.type(7).dtype, rank=None, axis=None)
    op = conv_op(_attributes(node), node.type(3))
    if x_params is None or w_params is None or y_params is None:
        return node.keep_for_parameters()
    if op is None or node.type(0).rank is None:
        return node.keep(_unknown_shape(node, 3))
    kinds = quantized(x_params, None), quantized(w_params, None)
    scale = accumulator_scale(op, *kinds, 0, node.label)
    if isinstance(scale, Refusal):
        return node.keep(scale)
    x, w = node.codes(node.input(0), x_params), node.codes(node.input(3), w_params)
    bias = node.input(8) if node.has(8) else ""
    last, rank = bool(node.attribute("channels_last", 0)), node.type(0).rank or 0
    if last:
        x = node.emit(Transpose(perm=(0, rank - 1, *range(1, rank - 1))), [x], [node.fresh("nchw")])
    accumulator = node.emit(op, [x, w, bias], [node.fresh("accumulator")])
    if last:
        y = node.emit(Requantize(out=y_params), [accumulator], [node.fresh("channels_first")])
        node.emit(Transpose(perm=(0, *range(2, rank), 1)), [y])
    else:
        node.emit(Requantize(out=y_params), [accumulator])
    return None


@imports("ConvInteger", since=10)
def conv_integer(node: NodeView) -> None:
    """ConvInteger: x, w, x_zero_point, w_zero_point; zero points are values, often computed."""
    op = conv_op(_attributes(node), node.type(1))
    if op is None or node.type(0).rank is None:
        return node.keep(_unknown_shape(node, 1))
    zeros = [node.integers(node.input(i)) if node.has(i) else "" for i in (2, 3)]
    operands = [node.integers(node.input(0)), node.integers(node.input(1)), "", *zeros]
    node.emit(op, operands)
    return None


def _unknown_shape(node: NodeView, weights: int) -> Refusal:
    return Refusal(
        code=Code.UNSUPPORTED_ATTRIBUTE,
        detail=f"'{node.input(0)}' has rank {node.type(0).rank}, '{node.input(weights)}' has shape "
        f"{node.type(weights).shape}: known ranks 3 to 5 and a known kernel make a convolution",
    )


def _attributes(node: NodeView) -> dict[str, Any]:
    names = ("auto_pad", "strides", "pads", "dilations", "group")
    found = {name: node.attribute(name) for name in names}
    return {name: value for name, value in found.items() if value is not None}
