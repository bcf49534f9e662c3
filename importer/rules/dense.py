"""Gemm and MatMul, QLinearMatMul and MatMulInteger, QGemm of com.microsoft."""

from __future__ import annotations

import numpy as np

from intonnx.importer.node_view import NodeView
from intonnx.importer.parameters import make_params
from intonnx.importer.qdq.bias import (
    accumulator_scale,
    add_apart,
    addend_codes,
    bias_constant,
    fold_bias,
    matrix_bias_shape,
)
from intonnx.importer.qdq.boundary import Boundary, Quantized
from intonnx.importer.registry import imports, quantizes
from intonnx.ir.errors import QuantizationFailure
from intonnx.ir.graph import Refusal
from intonnx.ir.ops.dense import BatchMatMul, Dense, MatrixProduct
from intonnx.ir.ops.quantize import Dequantize, Requantize
from intonnx.ir.ops.storage_cast import StorageCast
from intonnx.ir.ops.transpose import Transpose
from intonnx.ir.reasons import Code
from intonnx.ir.types import Array, DType, QuantParams, TensorType, quantized

from .blocked_dense import blocked_product

__all__ = ["fold_bias"]

EXCHANGE = Transpose(perm=(1, 0))


def product_op(b: TensorType) -> MatrixProduct:
    """The operator for a right side of this type."""
    return Dense() if b.rank == 2 else BatchMatMul()


# -- between quantizers -------------------------------------------------------------------------


@quantizes("MatMul")
def quantize_matmul(boundary: Boundary) -> Refusal | None:
    """Multiply codes into an accumulator."""
    a, b = boundary.needs_activation(0), _right_side(boundary, -1)
    if isinstance(a, Refusal):
        return a
    return b if isinstance(b, Refusal) else _multiplied(boundary, a, b, 0.0)


@quantizes("Gemm")
def quantize_gemm(boundary: Boundary) -> Refusal | None:
    """Gemm is alpha * A * B + beta * C: alpha joins the scale of B, beta * C is the bias."""
    columns_first = bool(boundary.attribute("transB", 0))
    a, b = boundary.needs_activation(0), _right_side(boundary, 0 if columns_first else -1)
    if isinstance(a, Refusal):
        return a
    if isinstance(b, Refusal):
        return b
    scaled = _scaled(boundary, b, float(boundary.attribute("alpha", 1.0)))
    if isinstance(scaled, Refusal):
        return scaled
    if boundary.attribute("transA", 0):
        a = _transposed(boundary, a)
    b = _transposed(boundary, scaled) if columns_first else scaled
    return _multiplied(boundary, a, b, float(boundary.attribute("beta", 1.0)))


def _multiplied(boundary: Boundary, a: Quantized, b: Quantized, beta: float) -> Refusal | None:
    """The product, with beta times input 2 as its bias; a beta of 0 means no bias."""
    op = product_op(b.type)
    if a.type.rank is None or b.type.rank is None:
        return Refusal(
            code=Code.UNSUPPORTED_TYPE,
            detail=f"the rank of '{a.name}' or '{b.name}' is not known: declare its shape",
        )
    if b.params.block is not None:
        return blocked_product(boundary, a, b, addend=bool(beta and boundary.has(2)))
    scale = accumulator_scale(op, a.type, b.type, b.type.rank - 1, f"'{a.name}' and '{b.name}'")
    if isinstance(scale, Refusal):
        return scale
    hint, bias = f"{boundary.node.results[0]}.accumulator", ""
    if beta and boundary.has(2):
        constant = boundary.needs_constant(2, "addend C")
        if isinstance(constant, Refusal):
            return constant
        (kind,) = op.infer([a.type, b.type])
        shape = matrix_bias_shape(constant.shape, kind.shape or (), scale)
        codes = addend_codes(boundary, 2, scale, shape, beta)
        if isinstance(codes, Refusal):
            return add_apart(boundary, 2, codes, lambda: boundary.emit(op, [a.name, b.name], hint),
                             constant.shape, beta)  # fmt: skip
        bias = bias_constant(boundary, 2, codes)
    boundary.accumulated(boundary.emit(op, [a.name, b.name, bias], hint))
    return None


def _right_side(boundary: Boundary, columns: int) -> Quantized | Refusal:
    """Input 1 as codes with one scale, or one for each index of the axis `columns` (0 or -1).

    Or blocked, which `_multiplied` looks at.
    """
    value = boundary.quantized(1)
    if value is None or value.params.storage.bits > 16:
        return Refusal(
            code=Code.INPUT_NOT_QUANTIZED,
            detail=f"'{boundary.name(1)}' does not arrive as 16-bit codes or narrower ones: give "
            "weights as a DequantizeLinear of integers, quantize an activation first",
        )
    params = value.params
    if params.block is not None:
        return value
    last = (value.type.rank or 0) - 1
    column_axis = last if columns == -1 and last > 0 else 0 if columns == 0 else None
    if params.axis is not None and params.axis != column_axis:
        return Refusal(
            code=Code.PER_AXIS_INPUT,
            detail=f"'{value.name}' has scales along axis {params.axis}, which the product sums "
            "over or which is a batch: quantize it per tensor or per column",
        )
    return value


def _scaled(boundary: Boundary, value: Quantized, factor: float) -> Quantized | Refusal:
    """The same codes with `factor` times the scale; a negative one also complements constants.

    ~code - ~zero_point is zero_point - code, for signed and unsigned codes alike.
    """
    if factor == 1.0:
        return value
    params, codes = _scaled_params(value.params, abs(factor)), value.codes
    if params is None or (factor < 0 and codes is None):
        return Refusal(
            code=Code.UNSUPPORTED_ATTRIBUTE,
            detail=f"alpha is {factor}, which no scale of '{value.name}' expresses: fold it into "
            "the weights",
        )
    kind = quantized(params, value.type.shape)
    if codes is None:
        name = boundary.emit(StorageCast(out=params), [value.name], f"{value.name}.scaled")
        return Quantized(name, kind, None)
    if factor < 0:
        codes, kind = _complement(codes, params)
    return Quantized(boundary.constant_codes(f"{value.name}.scaled", codes, kind), kind, codes)


def _scaled_params(params: QuantParams, factor: float) -> QuantParams | None:
    with np.errstate(over="ignore", under="ignore"):
        scale = np.asarray(params.scale * np.float32(factor), np.float32)
    valid = bool(np.all(np.isfinite(scale)) and np.all(scale > 0))
    return params.model_copy(update={"scale": scale}) if valid else None


def _complement(codes: Array, params: QuantParams) -> tuple[Array, TensorType]:
    """Codes of the negated values: ~code within the bits of the storage type."""
    top = params.storage.low + params.storage.high
    negated = (top - codes.astype(np.int64)).astype(codes.dtype)
    update = {
        "zero_point": top - params.zero_point,
        "low": None if params.high is None else top - params.high,
        "high": None if params.low is None else top - params.low,
    }
    return negated, quantized(params.model_copy(update=update), codes.shape)


def _transposed(boundary: Boundary, value: Quantized) -> Quantized:
    """The matrix with its axes exchanged: a constant now, anything else at run time."""
    hint, kind = f"{value.name}.transposed", EXCHANGE.infer([value.type])[0]
    if value.codes is None:
        return Quantized(boundary.emit(EXCHANGE, [value.name], hint), kind, None)
    codes = np.ascontiguousarray(value.codes.T)
    return Quantized(boundary.constant_codes(hint, codes, kind), kind, codes)


# -- integer operators --------------------------------------------------------------------------


@imports("QLinearMatMul", since=10)
def qlinear_matmul(node: NodeView) -> None:
    """QLinearMatMul: a, a_scale, a_zero_point, b, b_scale, b_zero_point, y_scale, y_zero_point."""
    a = _parameters(node, 1, node.type(0).dtype, None)
    b = _parameters(node, 4, node.type(3).dtype, (node.type(3).rank or 0) - 1)
    y = _parameters(node, 6, node.type(7).dtype, None)
    if isinstance(a, Refusal) or isinstance(b, Refusal) or isinstance(y, Refusal):
        return node.keep(_first_refusal(a, b, y))
    if (refusal := _product_refusal(node, 3, a, b)) is not None:
        return node.keep(refusal)
    operands = [node.codes(node.input(0), a), node.codes(node.input(3), b)]
    accumulator = node.emit(product_op(node.type(3)), operands, [node.fresh("accumulator")])
    node.emit(Requantize(out=y), [accumulator])
    return None


@imports("MatMulInteger", since=10)
def matmul_integer(node: NodeView) -> None:
    """MatMulInteger: a, b, a_zero_point, b_zero_point; zero points are values, often computed."""
    if (refusal := _rank_refusal(node, 1)) is not None:
        return node.keep(refusal)
    zeros = [node.integers(node.input(i)) if node.has(i) else "" for i in (2, 3)]
    operands = [node.integers(node.input(0)), node.integers(node.input(1)), "", *zeros]
    node.emit(product_op(node.type(1)), operands)
    return None


@imports("QGemm", since=1, domain="com.microsoft")
def qgemm(node: NodeView) -> None:
    """QGemm: A, its scale and zero point, the same of B, C, y_scale, y_zero_point.

    The kernel multiplies A * B + C by (alpha * a_scale) * b_scale: alpha belongs to the scale of A.
    """
    columns = 0 if node.attribute("transB", 0) else 1
    a = _parameters(node, 1, node.type(0).dtype, None)
    b = _parameters(node, 4, node.type(3).dtype, columns)
    y = _parameters(node, 7, node.type(8).dtype, None) if node.has(7) else None
    if isinstance(a, Refusal) or isinstance(b, Refusal) or isinstance(y, Refusal):
        return node.keep(_first_refusal(a, b, y))
    alpha = float(node.attribute("alpha", 1.0))
    scaled = _scaled_params(a, alpha) if alpha > 0 else None
    if scaled is None:
        detail = f"alpha of {node.label} is {alpha}, which no scale of '{node.input(0)}' expresses"
        return node.keep(Refusal(code=Code.UNSUPPORTED_ATTRIBUTE, detail=detail))
    if (refusal := _product_refusal(node, 3, scaled, b)) is not None:
        return node.keep(refusal)
    left, right = node.codes(node.input(0), scaled), node.codes(node.input(3), b)
    if node.attribute("transA", 0):
        left = _flipped(node, 0, left, scaled)
    if columns == 0:
        right = _flipped(node, 3, right, b)
    bias = node.integers(node.input(6)) if node.has(6) else ""
    accumulator = node.emit(Dense(), [left, right, bias], [node.fresh("accumulator")])
    node.emit(Dequantize() if y is None else Requantize(out=y), [accumulator])
    return None


def _flipped(node: NodeView, index: int, name: str, params: QuantParams) -> str:
    """The matrix `name`, which is input `index` with these parameters, with its axes exchanged."""
    codes = node.constant(index)
    if codes is None:
        return node.emit(EXCHANGE, [name], [node.fresh("transposed")])
    (kind,) = EXCHANGE.infer([quantized(params, codes.shape)])
    return node.new_constant(f"{name}.transposed", np.ascontiguousarray(codes.T), kind)


def _product_refusal(
    node: NodeView, b: int, left: QuantParams, right: QuantParams
) -> Refusal | None:
    """A refusal when the product of the scales, or a rank, is not known or not possible."""
    if (refusal := _rank_refusal(node, b)) is not None:
        return refusal
    kinds = quantized(left, None), quantized(right, None)
    scale = accumulator_scale(Dense(), *kinds, right.axis or 0, node.label)
    return scale if isinstance(scale, Refusal) else None


def _rank_refusal(node: NodeView, b: int) -> Refusal | None:
    if node.type(0).rank is not None and node.type(b).rank is not None:
        return None
    return Refusal(
        code=Code.UNSUPPORTED_TYPE,
        detail=f"the rank of '{node.input(0)}' or '{node.input(b)}' is not known",
    )


def _first_refusal(*found: QuantParams | Refusal | None) -> Refusal | None:
    return next((item for item in found if isinstance(item, Refusal)), None)


def _parameters(
    node: NodeView, index: int, storage: DType, axis: int | None
) -> QuantParams | Refusal:
    """The parameters whose scale is input `index` and whose zero point is the next one.

    More than one scale is allowed along `axis` only: a row of scales, its first axes of length 1.
    """
    scale, zeros = node.constant(index), node.constant(index + 1)
    if scale is None or (zeros is None and node.has(index + 1)):
        return Refusal(
            code=Code.RUNTIME_PARAMETERS,
            detail=f"a scale or zero point of {node.label} is computed at run time or may be "
            "overridden by the caller: make it a constant initializer",
        )
    if not storage.is_integer:
        detail = f"{node.label} has codes of type {storage}, which have no integer arithmetic"
        return Refusal(code=Code.UNSUPPORTED_TYPE, detail=detail)
    if zeros is not None and node.type(index + 1).dtype is not storage:
        raise QuantizationFailure(
            f"the zero point '{node.input(index + 1)}' is {node.type(index + 1).dtype}, the "
            f"codes are {storage}"
        )
    zeros = np.zeros(scale.shape, np.int64) if zeros is None else zeros
    if scale.size == zeros.size == 1:
        return make_params(scale, zeros, storage, rank=None, axis=None, node=node.label)
    rows = any(size != 1 for array in (scale, zeros) for size in array.shape[:-1])
    if axis is None or axis < 0 or rows:
        detail = (
            f"'{node.input(index)}' has scales along another axis than its columns: "
            "quantize that operand per tensor"
        )
        return Refusal(code=Code.PER_AXIS_INPUT, detail=detail)
    size = np.broadcast_shapes((scale.size,), (zeros.size,))
    scale, zeros = (np.broadcast_to(array.reshape(-1), size) for array in (scale, zeros))
    return make_params(scale, zeros, storage, rank=None, axis=axis, node=node.label)
