"""The bias of an accumulating operator: int32 at the scale of the accumulator."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from intonnx.ir.errors import ModelFailure, TypeFailure
from intonnx.ir.graph import Node, Refusal
from intonnx.ir.op import Op
from intonnx.ir.ops.add import Add
from intonnx.ir.ops.conv import product_scale
from intonnx.ir.ops.dense import MatrixProduct
from intonnx.ir.ops.quantize import Quantize
from intonnx.ir.reasons import Code
from intonnx.ir.types import Array, Dim, DType, TensorType, plain

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


def accumulator_scale(
    op: Op, x: TensorType, weights: TensorType, axis: int, names: str
) -> Array | Refusal:
    """The scale of the accumulator, rank 1 when the weights are quantized along `axis`.

    Refuses scales whose product float32 cannot hold; `names` says whose they are.
    """
    try:
        return product_scale(op, x, weights, axis)
    except TypeFailure:
        return Refusal(
            code=Code.UNSUPPORTED_TYPE,
            detail=f"the product of the scales of {names} leaves the range of float32: choose "
            "scales nearer to 1",
        )


def addend_codes(
    boundary: Boundary, index: int, scale: Array, shape: Sequence[int], factor: float = 1.0
) -> Array | Refusal:
    """The constant at `index` times `factor`, as int32 codes of this shape at this scale.

    The constant, without its first axes where these have one element, and `scale`, the
    accumulator's, broadcast to `shape`. Refuses as `bias_operand` does.
    """
    value = boundary.quantized(index)
    if value is not None and value.codes is not None:
        scales, zeros = value.params.along(value.codes.ndim)
        same = value.params.storage is DType.I32 and not np.any(zeros) and factor == 1.0
        if same and np.array_equal(_spread(scales, shape), _spread(scale, shape)):
            return _spread(value.codes, shape)
        real = (value.codes.astype(np.float64) - zeros) * scales.astype(np.float64)
    else:
        constant = boundary.needs_constant(index, "bias")
        if isinstance(constant, Refusal):
            return constant
        real = constant.astype(np.float64)
    real, steps = _spread(real * factor, shape), _spread(scale.astype(np.float64), shape)
    codes = np.rint(real / steps)
    if not np.all(np.abs(codes) <= DType.I32.high):
        return _refusal(boundary, index, "needs more than 32 bits")
    if np.any(np.abs(codes * steps - real) > allowed_error(boundary)):
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


def _spread(array: Array, shape: Sequence[int]) -> Array:
    """The array broadcast to a shape of lower or equal rank, first axes of one element dropped."""
    while array.ndim > len(shape) and array.shape[0] == 1:
        array = array[0]
    try:
        return np.broadcast_to(array, tuple(shape))
    except ValueError:
        cause = f"a bias of shape {list(array.shape)} does not fit {list(shape)}"
        raise ModelFailure(cause) from None


def add_apart(
    boundary: Boundary,
    index: int,
    refusal: Refusal,
    accumulate: Callable[[], str],
    shape: Sequence[int],
    factor: float = 1.0,
) -> Refusal | None:
    """End a rule whose bias has no codes at the scale of the sums: a `qnn.add` behind them.

    The constant at `index` times `factor`, in `shape`, keeps its float32 value, as that of an Add
    of its own does. `accumulate` emits the operator without a bias and returns its result. Returns
    the refusal, and changes nothing, where it has another code or the result is needed as float.
    """
    real = boundary.constant(index)
    out = boundary.quantizer_params()
    if (
        refusal.code != str(Code.BIAS_OUT_OF_RANGE)
        or real is None
        or boundary.result_type.dtype is not DType.F32
        or boundary.needs_quantizers() is not None
        or not all(params.per_tensor for params in out)
    ):
        return refusal
    values = real.astype(np.float32) * np.float32(factor)
    if not np.all(np.isfinite(values)):
        return refusal
    values = np.ascontiguousarray(values.reshape(tuple(shape)))
    name = f"{boundary.name(index)}.addend"
    addend = boundary.constant_codes(name, values, plain(DType.F32, values.shape))
    return boundary.produced(lambda params: Add(out=params), [accumulate(), addend])


def allowed_error(boundary: Boundary) -> float:
    """Half the smallest step of the quantizers that read the result; anything without one."""
    ops = [boundary.rewriter.node(node_id).op for node_id in boundary.quantizers()]
    steps = [float(op.out.scale.min()) for op in ops if isinstance(op, Quantize)]
    return min(steps, default=np.inf) / 2


def _refusal(boundary: Boundary, index: int, what: str) -> Refusal:
    return Refusal(
        code=Code.BIAS_OUT_OF_RANGE,
        detail=f"the bias '{boundary.name(index)}' {what} at the scale of input times weights: "
        "choose scales of input and weights nearer to those of bias and result",
    )


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
    rewriter, real = boundary.rewriter, boundary.name(data)
    dequantize, product_id = rewriter.producer_id(real), rewriter.producer_id(value.name)
    if dequantize is None or product_id is None:
        return False
    product = rewriter.node(product_id)
    alone = (
        rewriter.user_ids(real) == [boundary.node_id]
        and rewriter.user_ids(value.name) == [dequantize]
        and not rewriter.is_output(real)
        and not rewriter.is_output(value.name)
    )
    if not alone or product.op.signature[2:3] != ("bias?",):
        return False
    codes = _joined_codes(boundary, value.type, product, constant)
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
    boundary: Boundary, kind: TensorType, product: Node, constant: int
) -> Array | None:
    """The codes of the constant plus those of the bias that is already there, if they fit."""
    array, scale = boundary.constant(constant), kind.params.scale
    assert array is not None
    matrix = isinstance(product.op, MatrixProduct)
    shape = _matrix_shape(array, kind) if matrix else _channel_shape(array, kind)
    if shape is None:
        return None
    if not matrix and scale.ndim:
        scale = scale.reshape(-1, *[1] * (len(shape) - 1))
    codes = addend_codes(boundary, constant, scale, shape)
    if isinstance(codes, Refusal):
        return None
    if not matrix:
        codes = codes.reshape(-1)
    before = product.operands[2] if len(product.operands) > 2 else ""
    if not before:
        return codes
    known = boundary.rewriter.constants.get(before)
    if known is None:
        return None
    total = codes.astype(np.int64) + known
    return total.astype(np.int32) if np.all(np.abs(total) <= DType.I32.high) else None


def _channel_shape(array: Array, kind: TensorType) -> list[int] | None:
    """[channels, 1, ...] when the array varies along axis 1 of the accumulator at most."""
    if kind.shape is None or not isinstance(kind.shape[1], int) or array.ndim > len(kind.shape):
        return None
    sizes = [*[1] * (len(kind.shape) - array.ndim), *array.shape]
    if sizes.pop(1) not in (1, kind.shape[1]) or any(size != 1 for size in sizes):
        return None
    return [kind.shape[1], *[1] * (len(kind.shape) - 2)]


def _matrix_shape(array: Array, kind: TensorType) -> list[int] | None:
    """The shape of a bias for a matrix product, None when the array does not broadcast to it."""
    if kind.shape is None or array.ndim > len(kind.shape):
        return None
    pairs = zip(reversed(array.shape), reversed(kind.shape), strict=False)
    if not all(size in (1, whole) for size, whole in pairs):
        return None
    return matrix_bias_shape(array.shape, kind.shape, kind.params.scale)


def matrix_bias_shape(shape: Sequence[int], result: Sequence[Dim], scale: Array) -> list[int]:
    """The shape of the codes of an addend of this shape: [N] unless it varies along other axes.

    `result` is the shape of the matrix product, `scale` that of its accumulator.
    """
    sizes = list(shape)
    while len(sizes) > 1 and sizes[0] == 1:
        sizes.pop(0)
    if not result:
        return []
    last = sizes[-1] if sizes else 1
    if scale.ndim:
        last = scale.size
    elif isinstance(result[-1], int):
        last = result[-1]
    return [*sizes[:-1], last]
