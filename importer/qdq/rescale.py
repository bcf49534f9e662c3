"""A factor and an addend for each channel of an accumulator, put into its weights and bias."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from intonnx.ir.graph import Node
from intonnx.ir.ops.conv import Conv
from intonnx.ir.ops.conv_transpose import ConvTranspose
from intonnx.ir.ops.dense import MatrixProduct
from intonnx.ir.rewriter import NodeId
from intonnx.ir.types import Array, DType, QuantParams, TensorType, plain, quantized

from .bias import allowed_error
from .boundary import Boundary, Quantized
from .typed_sums import has_defined_sums


@dataclass(frozen=True)
class _Weights:
    """Weights with a scale and zero point for each channel, which lie along `axis`."""

    codes: Array
    params: QuantParams
    axis: int


def rescale_channels(boundary: Boundary, value: Quantized, factor: Array, addend: Array) -> bool:
    """Let `real * factor + addend` along axis 1 be done by the operator that makes the accumulator.

    Args:
        boundary: the float operator that rescales; it is gone when this was done, its result
            delivered.
        value: the accumulator that it reads.
        factor: float64, one entry a channel.
        addend: float64, one entry a channel.

    The scale of a channel's weights takes the size of its factor, exactly but for the rounding to
    float32, and the codes its sign: no code of a weight is lost. The addend joins the bias, to half
    a step of the accumulator. Returns False, and changes nothing, when another operator reads the
    accumulator, when weights or bias are computed at run time or do not fit, or when the bias
    would lose more than half a step of the result.
    """
    found = _producer(boundary, value)
    if found is None or not (np.all(np.isfinite(factor)) and np.all(np.isfinite(addend))):
        return False
    dequantize_id, product_id, product = found
    weights = _weights(boundary, product, factor.size)
    if weights is None:
        return False
    scaled = _scaled(weights, factor)
    if scaled is None:
        return False
    name = product.operands[1]
    kind = quantized(scaled.params, scaled.codes.shape)
    steps = _steps(boundary, product, kind)
    if steps is None:
        return False
    bias = _bias(boundary, product, np.sign(factor), addend, steps)
    if bias is None:
        return False
    hint = boundary.node.results[0]
    operands = [
        product.operands[0],
        boundary.constant_codes(f"{name}.rescaled", scaled.codes, kind),
        boundary.constant_codes(f"{hint}.bias", bias, plain(DType.I32, bias.shape)),
    ]
    boundary.rewriter.remove(dequantize_id)
    boundary.rewriter.remove(product_id)
    sources = [*product.sources, *boundary.node.sources]
    boundary.accumulated(
        boundary.emit(product.op, operands, f"{hint}.accumulator", sources=sources)
    )
    return True


def rescale_by_constant(boundary: Boundary, index: int, *, divides: bool = False) -> bool:
    """Let a product or quotient of an accumulator and constants of its channels join the weights.

    Quantization-aware training of PyTorch divides the result of a convolution by the factors that
    its weights have been multiplied by. `index` is that of the constant. Returns False, and changes
    nothing, where `rescale_channels` does, and where the sums are those of integer operators, whose
    real values are defined to the last bit.
    """
    value, constant = boundary.quantized(1 - index), boundary.constant(index)
    if value is None or constant is None or not value.is_accumulator:
        return False
    shape, product = value.type.shape, boundary.rewriter.producer(value.name)
    if shape is None or len(shape) < 2 or not isinstance(shape[1], int) or product is None:
        return False
    if has_defined_sums(product) or constant.ndim > len(shape):
        return False
    sizes = [*[1] * (len(shape) - constant.ndim), *constant.shape]
    if sizes[1] not in (1, shape[1]) or constant.size != sizes[1]:
        return False
    factor = np.broadcast_to(constant.reshape(-1).astype(np.float64), (shape[1],))
    if divides:
        with np.errstate(divide="ignore"):
            factor = 1 / factor
    return rescale_channels(boundary, value, factor, np.zeros(shape[1]))


def _producer(boundary: Boundary, value: Quantized) -> tuple[NodeId, NodeId, Node] | None:
    """The dequantize and the operator of an accumulator that nothing else reads."""
    rewriter, readers = boundary.rewriter, boundary.rewriter.user_ids(value.name)
    product_id = rewriter.producer_id(value.name)
    if len(readers) != 1 or product_id is None:
        return None
    (dequantize_id,) = readers
    (real,) = rewriter.node(dequantize_id).results
    alone = (
        rewriter.user_ids(real) == [boundary.node_id]
        and not rewriter.is_output(real)
        and not rewriter.is_output(value.name)
    )
    return (dequantize_id, product_id, rewriter.node(product_id)) if alone else None


def _weights(boundary: Boundary, product: Node, channels: int) -> _Weights | None:
    """Constant weights that have an axis for the channels (axis 1) of the result."""
    axis = _channel_axis(boundary, product)
    if axis is None:
        return None
    name = product.operands[1]
    codes, params = boundary.rewriter.constants.get(name), boundary.rewriter.types[name].quant
    if codes is None or params is None or params.block is not None:
        return None
    if codes.shape[axis] != channels or params.axis not in (None, axis):
        return None
    spread: dict[str, Any] = {
        "scale": np.broadcast_to(params.scale, (channels,)),
        "zero_point": np.broadcast_to(params.zero_point, (channels,)),
        "axis": axis,
    }
    return _Weights(codes, params.model_copy(update=spread), axis)


def _channel_axis(boundary: Boundary, product: Node) -> int | None:
    """The axis of the weights that is axis 1 of the result."""
    op = product.op
    if isinstance(op, Conv):
        return 0
    shape = boundary.rewriter.types[product.operands[1]].shape if len(product.operands) > 1 else ()
    if isinstance(op, ConvTranspose) and shape:
        if op.groups == 1:
            return 1
        return 0 if shape[:2] == (op.groups, 1) else None
    result = boundary.rewriter.types[product.results[0]]
    # A vector has no axis for channels, and a batch of matrices gives a result of rank 3.
    if isinstance(op, MatrixProduct) and result.rank == 2 and shape and len(shape) == 2:
        return 1
    return None


def _scaled(weights: _Weights, factor: Array) -> _Weights | None:
    """The same codes for each channel times |factor|, mirrored where the factor is negative.

    A channel whose factor is 0 keeps its scale and gets weights of 0.
    """
    params, rank, axis = weights.params, weights.codes.ndim, weights.axis
    wide = weights.codes.astype(np.int64)
    shape = [1] * rank
    shape[axis] = -1
    zeros = params.zero_point
    low, high = params.storage.low, params.storage.high
    # A mirrored code may leave the range of its type, as -128 does; then the range is mirrored too.
    mirrored = 2 * zeros.reshape(shape) - wide
    others = tuple(i for i in range(rank) if i != axis)
    inside = np.all((mirrored >= low) & (mirrored <= high), axis=others)
    new_zeros = np.where((factor < 0) & ~inside, low + high - zeros, zeros)
    centred = (wide - zeros.reshape(shape)) * np.sign(factor).astype(np.int64).reshape(shape)
    with np.errstate(over="ignore", under="ignore"):
        sizes = np.where(factor == 0, 1.0, np.abs(factor))
        scale = (params.scale.astype(np.float64) * sizes).astype(np.float32)
    # The smallest normal float32: below it, a scale loses digits.
    if not np.all(np.isfinite(scale) & (scale >= np.finfo(np.float32).tiny)):
        return None
    codes = (centred + new_zeros.reshape(shape)).astype(params.storage.numpy)
    update: dict[str, Any] = {"scale": scale, "zero_point": new_zeros, "low": None, "high": None}
    return _Weights(codes, params.model_copy(update=update), axis)


def _steps(boundary: Boundary, product: Node, weights: TensorType) -> Array | None:
    """The scale of each channel of the accumulator with these weights."""
    types = boundary.rewriter.types
    operands = [types[product.operands[0]], weights]
    if boundary.misfit(product.op, operands) is not None:
        return None
    (result,) = product.op.infer(operands)
    return result.params.scale.astype(np.float64)


def _bias(
    boundary: Boundary, product: Node, sign: Array, addend: Array, steps: Array
) -> Array | None:
    """int32 codes: those of the bias that is there, mirrored with the weights, plus the addend.

    A channel whose factor is 0 has the addend alone.
    """
    more = np.rint(addend / steps)
    if np.any(np.abs(more * steps - addend) > allowed_error(boundary)):
        return None
    name = product.operands[2] if len(product.operands) > 2 else ""
    known = boundary.rewriter.constants.get(name) if name else np.zeros((), np.int64)
    # A bias of a matrix product that varies along its rows broadcasts, as axis 1 is the last.
    if known is None or np.any(np.abs(more) > DType.I32.high):
        return None
    total = known.astype(np.int64) * sign.astype(np.int64) + more.astype(np.int64)
    return total.astype(np.int32) if np.all(np.abs(total) <= DType.I32.high) else None
