"""ConvTranspose as a convolution of integers, and between DQ and Q.

No runtime has an integer ConvTranspose. With stride s the cells q * s + r of the result, for one r,
are a convolution of the input with every s-th cell of the kernel, flipped. So all of them are one
convolution with s times the channels, whose channels are then moved into space: the same products,
the same sums, and no zero is inserted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx

from intonnx.ir.graph import Node
from intonnx.ir.ops.conv_transpose import (
    ConvTranspose,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
)
from intonnx.ir.types import Array, DType, QuantParams, static_shape

from ._accumulator import between
from .emitter import Emitter
from .registry import emitters


@dataclass(frozen=True)
class _Phases:
    """The convolution that computes every phase, for known sizes.

    Attributes:
        w: weights [O * phases, C / groups, *cells] in the storage type of the activation.
        w_zero: their one zero point.
        attributes: those of the convolution.
        split: the shape of its result with the phases as axes of their own.
        kept: the first cells, then the ends, of what is kept of each axis; empty for all of it.
    """

    w: Array
    w_zero: Array
    attributes: dict[str, Any]
    split: tuple[int, ...]
    kept: tuple[int, ...]


@emitters.joins(ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)
def join_conv_transpose(op: ConvTranspose, node: Node, consumer: Node, out: Emitter) -> bool:
    """QLinearConv with a requantize to 8 bits; in the QDQ form DQ -> ConvTranspose (-> Q)."""
    phases = _phases(op, node, out) if out.qlinear else None
    if phases is None:
        return between(node, consumer, out, "ConvTranspose", **_attributes(op))
    x, result = node.operands[0], consumer.results[0]
    kind = out.type(result)
    if kind.dtype is not out.type(x).dtype or not kind.params.per_tensor:
        return False
    count = math.prod(op.strides)
    w_params, bias = out.params(node.operands[1]), _bias(node, out, count)
    scale = out.params(node.results[0]).scale
    if scale.ndim:
        # The scales of the weights, as the accumulator's are products with that of the input.
        scale = np.repeat(_channel_scales(op, w_params, scale.size), count)
    else:
        scale = w_params.scale
    zero = np.broadcast_to(phases.w_zero, scale.shape)
    inputs = [
        *out.quantized_operand(x),
        out.constant(phases.w, f"{node.operands[1]}.phases"),
        *(out.constant(scale, "scale"), out.constant(zero, "zero_point")),
        *out.quantization(kind.params),
        "" if bias is None else out.constant(bias, f"{node.operands[2]}.phases"),
    ]
    sums = out.value("QLinearConv", inputs, f"{result}.phases", **phases.attributes)
    _interleave(phases, sums, result, out)
    return True


@emitters.register(ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)
def conv_transpose(op: ConvTranspose, node: Node, out: Emitter) -> None:
    """ConvInteger and an integer addition of the bias: the accumulator itself."""
    phases, result = _phases(op, node, out), node.results[0]
    if phases is None:
        return _float_sums(op, node, out)
    x, x_zero = out.unsigned(node.operands[0], "")
    w = out.constant(phases.w, f"{node.operands[1]}.phases")
    inputs = [x, w, x_zero, out.constant(phases.w_zero, "zero_point")]
    sums = out.value("ConvInteger", inputs, f"{result}.phases", **phases.attributes)
    bias = _bias(node, out, math.prod(op.strides))
    if bias is not None:
        column = out.constant(bias.reshape(-1, *[1] * op.spatial), f"{node.operands[2]}.phases")
        sums = out.value("Add", [sums, column], f"{result}.sum")
    return _interleave(phases, sums, result, out)


def _phases(op: ConvTranspose, node: Node, out: Emitter) -> _Phases | None:
    """None where the kernels do not take the types, or something is known at run time only."""
    x, w = out.type(node.operands[0]), out.graph.constants.get(node.operands[1])
    kind, sizes = out.type(node.results[0]), static_shape((x.shape or ("?",))[2:])
    bias = [*node.operands, ""][2]
    known_bias = not bias or bias in out.graph.constants
    if w is None or sizes is None or not known_bias or w.dtype.itemsize > 1:
        return None
    if x.dtype not in (DType.U8, DType.I8):
        return None
    shape = static_shape((kind.shape or ("?",))[2:])
    centred = w.astype(np.int64) - out.params(node.operands[1]).along(w.ndim)[1]
    low, high = int(centred.min(initial=0)), int(centred.max(initial=0))
    if shape is None or 0 in (*sizes, *shape, *w.shape) or high - low > 255:
        return None
    shift = x.dtype.low - low
    cells, attributes, counts, kept = _geometry(op, centred, sizes, shape)
    outputs = w.shape[1] * op.groups
    return _Phases(
        (cells + shift).astype(x.dtype.numpy),
        np.asarray(shift, x.dtype.numpy),
        attributes,
        (outputs, *op.strides, *counts),
        kept,
    )


def _geometry(
    op: ConvTranspose, w: Array, sizes: Sequence[int], shape: Sequence[int]
) -> tuple[Array, dict[str, Any], list[int], tuple[int, ...]]:
    """Weights by phase, attributes of their convolution, its sizes, and what is kept."""
    n = op.spatial
    before, after, counts, starts, dilations = [], [], [], [], []
    for axis in range(n):
        stride, dilation = op.strides[axis], op.dilations[axis]
        if stride > 1 and dilation > 1:
            w, dilation = _spread(w, 2 + axis, dilation), 1
        cells = -(-w.shape[2 + axis] // stride)
        reach = (cells - 1) * dilation
        # The convolution starts at the first cell that is kept, if padding gets it there.
        skipped = min(op.pads[axis] // stride, reach)
        first = op.pads[axis] - skipped * stride
        needed = -(-(first + shape[axis]) // stride)
        head = reach - skipped
        tail = max(0, needed + reach - sizes[axis] - head)
        before.append(head)
        after.append(tail)
        counts.append(sizes[axis] + head + tail - reach)
        starts.append(first)
        dilations.append(dilation)
    attributes = {
        "strides": (1,) * n,
        "dilations": dilations,
        "group": op.groups,
        "pads": (*before, *after),
    }
    return _by_phase(op, w), attributes, counts, _ends(op, counts, starts, shape)


def _ends(
    op: ConvTranspose, counts: Sequence[int], starts: Sequence[int], shape: Sequence[int]
) -> tuple[int, ...]:
    """First cells and ends of the part of the interleaved result that is kept; () for all of it."""
    whole = [count * stride for count, stride in zip(counts, op.strides, strict=True)]
    if not any(starts) and whole == list(shape):
        return ()
    return (*starts, *(start + size for start, size in zip(starts, shape, strict=True)))


def _spread(w: Array, axis: int, dilation: int) -> Array:
    """The kernel with the holes of its dilation filled with zeros."""
    shape = list(w.shape)
    shape[axis] = (shape[axis] - 1) * dilation + 1
    whole = np.zeros(shape, w.dtype)
    whole[(*[slice(None)] * axis, slice(None, None, dilation))] = w
    return whole


def _by_phase(op: ConvTranspose, w: Array) -> Array:
    """[C, O/g, *kernel] -> [O * phases, C/g, *cells]: every stride-th cell, flipped."""
    n, groups = op.spatial, op.groups
    fill = [(0, -size % stride) for size, stride in zip(w.shape[2:], op.strides, strict=True)]
    w = np.pad(w, [(0, 0), (0, 0), *fill])
    split = [
        part
        for size, stride in zip(w.shape[2:], op.strides, strict=True)
        for part in (size // stride, stride)
    ]
    # [g, C/g, O/g, cells, stride, cells, stride, ...] -> [g, O/g, *strides, C/g, *cells]
    w = w.reshape(groups, -1, w.shape[1], *split)
    order = [0, 2, *(4 + 2 * i for i in range(n)), 1, *(3 + 2 * i for i in range(n))]
    w = np.flip(w.transpose(order), axis=tuple(range(n + 3, 2 * n + 3)))
    return w.reshape(-1, *w.shape[n + 2 :])


def _interleave(phases: _Phases, sums: str, result: str, out: Emitter) -> None:
    """Move the phases [N, O * phases, *counts] into space and cut the result out."""
    n = (len(phases.split) - 1) // 2
    counts, strides = phases.split[1 + n :], phases.split[1 : 1 + n]
    if max(strides) > 1:
        shape = out.constant(np.asarray([-1, *phases.split], np.int64), "shape")
        sums = out.value("Reshape", [sums, shape], f"{result}.split")
        perm = [0, 1, *(axis for i in range(n) for axis in (2 + n + i, 2 + i))]
        sums = out.value("Transpose", [sums], f"{result}.interleaved", perm=perm)
        whole = [count * stride for count, stride in zip(counts, strides, strict=True)]
        shape = out.constant(np.asarray([-1, phases.split[0], *whole], np.int64), "shape")
        if not phases.kept:
            return out.node("Reshape", [sums, shape], [result])
        sums = out.value("Reshape", [sums, shape], f"{result}.whole")
    elif not phases.kept:
        return out.node("Identity", [sums], [result])
    starts, ends = phases.kept[:n], phases.kept[n:]
    bounds = [
        out.constant(np.asarray(numbers, np.int64), hint)
        for numbers, hint in ((starts, "starts"), (ends, "ends"), (range(2, 2 + n), "axes"))
    ]
    return out.node("Slice", [sums, *bounds], [result])


def _bias(node: Node, out: Emitter, phases: int) -> Array | None:
    name = [*node.operands, ""][2]
    return np.repeat(out.graph.constants[name], phases) if name else None


def _channel_scales(op: ConvTranspose, w: QuantParams, channels: int) -> Array:
    """One scale of the weights for each output channel."""
    if w.axis == 1:
        return np.tile(w.scale, op.groups)
    return np.repeat(w.scale, channels // w.scale.size)


def _attributes(op: ConvTranspose) -> dict[str, Any]:
    return {
        "strides": op.strides,
        "dilations": op.dilations,
        "group": op.groups,
        "pads": op.pads,
        "output_padding": op.output_padding if any(op.output_padding) else None,
    }


def _float_sums(op: ConvTranspose, node: Node, out: Emitter) -> None:
    """The accumulator by a ConvTranspose of whole numbers in float32, rounded where that errs."""
    result = node.results[0]
    inputs = []
    for name in node.operands[:2]:
        params = out.params(name)
        units = params.model_copy(
            update={"scale": np.ones_like(params.scale), "expressed": DType.F32}
        )
        codes = [out.operand(name), *out.quantization(units)]
        whole = out.value("DequantizeLinear", codes, f"{name}.whole", axis=params.axis)
        inputs.append(whole)
    if [*node.operands, ""][2]:
        bias = out.operand(node.operands[2])
        inputs.append(out.value("Cast", [bias], f"{bias}.whole", to=onnx.TensorProto.FLOAT))
    sums = out.value("ConvTranspose", inputs, f"{result}.whole", **_attributes(op))
    rounded = out.value("Round", [sums], f"{result}.rounded")
    out.node("Cast", [rounded], [result], to=onnx.TensorProto.INT32)
