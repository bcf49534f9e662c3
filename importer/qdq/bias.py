"""The bias of an accumulating operator: int32 at the scale of the accumulator."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from intonnx.ir.graph import Node, Refusal
from intonnx.ir.ops.dense import MatrixProduct
from intonnx.ir.ops.quantize import Quantize
from intonnx.ir.reasons import Code
from intonnx.ir.types import Array, DType, TensorType, plain

from .boundary import Boundary, Quantized


def bias_operand(
    boundary: Boundary, index: int, scale: Array, weights: TensorType, channel_axis: int = 0
) -> str | Refusal:
    """The name of an int32 constant for the bias at `index`, "" when there is none.

    `scale` is the accumulator's: float32, rank 0 or one entry a channel. An int32 bias that has
    this scale and zero point 0 is used as it is. Any other is converted: its real value, in
    float64, divided by the scale and rounded half to even, which is exact to half an accumulator
    step. Refuses a bias that is computed at run time, leaves the range of int32, or would lose
    more than half a step of the result.
    """
    if not boundary.has(index):
        return ""
    assert weights.shape is not None
    channels = int(weights.shape[channel_axis])
    codes = addend_codes(boundary, index, scale, [channels])
    return codes if isinstance(codes, Refusal) else bias_constant(boundary, index, codes)


def addend_codes(
    boundary: Boundary, index: int, scale: Array, shape: Sequence[int], factor: float = 1.0
) -> Array | Refusal:
    """The constant at `index` times `factor`, as int32 codes that have the accumulator's scale.

    `shape` is that of the codes; the constant broadcasts to it once its leading axes of one
    element are dropped, and `scale` broadcasts along the last axis. Refuses as `bias_operand`.
    """
    value = boundary.quantized(index)
    if value is not None and value.codes is not None:
        if factor == 1.0 and _has_scale(value, scale):
            return np.broadcast_to(_trimmed(value.codes, len(shape)), shape)
        scales, zeros = value.params.along(value.codes.ndim)
        real = (value.codes.astype(np.float64) - zeros) * scales.astype(np.float64)
    else:
        constant = boundary.needs_constant(index, "bias")
        if isinstance(constant, Refusal):
            return constant
        real = constant.astype(np.float64)
    real = np.broadcast_to(_trimmed(real, len(shape)) * factor, shape)
    codes = np.rint(real / scale.astype(np.float64))
    if not np.all(np.abs(codes) <= DType.I32.high):
        return _refusal(boundary, index, "needs more than 32 bits")
    if np.any(np.abs(codes * scale.astype(np.float64) - real) > _allowed_error(boundary)):
        return _refusal(boundary, index, "loses too much")
    return codes.astype(np.int32)


def bias_constant(boundary: Boundary, index: int, codes: Array) -> str:
    """The name of a constant of int32 codes for the input at `index`; equal ones are shared."""
    codes = np.ascontiguousarray(codes)
    name = f"{boundary.name(index)}.codes"
    known = boundary.rewriter.constants.get(name)
    if known is not None and known.dtype == codes.dtype and np.array_equal(known, codes):
        return name
    return boundary.constant_codes(name, codes, plain(DType.I32, codes.shape))


def fold_bias(boundary: Boundary) -> bool:
    """Let an Add of a constant to an accumulator become the bias of the operator that makes it.

    The accumulator must have no other reader, and the constant must broadcast to its shape: along
    the channels of a convolution, any way at all for a matrix product. Returns whether it was
    done; the node of the Add is then gone, and its result delivered.
    """
    for data, constant in ((0, 1), (1, 0)):
        value = boundary.quantized(data)
        if value is not None and value.is_accumulator and boundary.constant(constant) is not None:
            return _fold(boundary, value, data, constant)
    return False


def _fold(boundary: Boundary, value: Quantized, data: int, constant: int) -> bool:
    rewriter = boundary.rewriter
    dequantize = rewriter.producer_id(boundary.name(data))
    product_id = rewriter.producer_id(value.name)
    alone = rewriter.user_ids(boundary.name(data)) == [boundary.node_id] and not (
        rewriter.is_output(boundary.name(data)) or rewriter.is_output(value.name)
    )
    if dequantize is None or product_id is None or not alone:
        return False
    product = rewriter.node(product_id)
    takes_bias = product.op.signature[2:3] == ("bias?",) and value.type.quant is not None
    if not takes_bias or rewriter.user_ids(value.name) != [dequantize]:
        return False
    codes = _joined_codes(boundary, value, product, constant)
    if codes is None:
        return False
    operands = [*product.operands, ""][:3]
    operands[2] = bias_constant(boundary, constant, codes)
    rewriter.remove(dequantize)
    rewriter.remove(product_id)
    sources = [*product.sources, *boundary.node.sources]
    hint = f"{boundary.node.results[0]}.accumulator"
    boundary.accumulated(boundary.emit(product.op, operands, hint, sources=sources))
    return True


def _joined_codes(
    boundary: Boundary, value: Quantized, product: Node, constant: int
) -> Array | None:
    """The codes of the constant plus those of the bias that is already there, if they fit."""
    array = boundary.constant(constant)
    kind = value.type
    assert array is not None
    shape = _addend_shape(array.shape, kind, isinstance(product.op, MatrixProduct))
    if shape is None:
        return None
    if not isinstance(product.op, MatrixProduct):
        # [C, 1, 1] becomes [C]: the channels are the only axis that is left.
        codes = addend_codes_of(boundary, constant, array.reshape(-1), kind.params.scale, shape)
    else:
        codes = addend_codes(boundary, constant, kind.params.scale, shape)
    if isinstance(codes, Refusal):
        return None
    before = product.operands[2] if len(product.operands) > 2 else ""
    if not before:
        return codes
    known = boundary.rewriter.constants.get(before)
    if known is None:
        return None
    total = codes.astype(np.int64) + known
    return total.astype(np.int32) if np.all(np.abs(total) <= DType.I32.high) else None
