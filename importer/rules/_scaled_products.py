"""MatMulIntegerToFloat and DynamicQuantizeMatMul: integer products with their scales and bias."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from intonnx.importer.node_view import NodeView
from intonnx.importer.qdq.bias import accumulator_scale
from intonnx.importer.registry import imports
from intonnx.ir.graph import Refusal
from intonnx.ir.ops.dense import BatchMatMul, Dense, MatrixProduct
from intonnx.ir.ops.quantize import Dequantize, DynamicQuantize
from intonnx.ir.reasons import Code
from intonnx.ir.types import Array, DType, QuantParams, TensorType, quantized

MICROSOFT = "com.microsoft"


@dataclass(frozen=True)
class Product:
    """An integer product, by the names of its values ("" where none is given)."""

    a: str
    b: str
    a_scale: str
    b_scale: str
    a_zero: str
    b_zero: str
    bias: str


@imports("MatMulIntegerToFloat", since=1, domain=MICROSOFT)
def matmul_integer_to_float(node: NodeView) -> None:
    """MatMulIntegerToFloat: A, B, a_scale, b_scale, a_zero_point, b_zero_point, bias.

    With constant scales the codes get them as parameters, and the sums are an accumulator.
    """
    a, b, a_scale, b_scale = (node.input(index) for index in range(4))
    a_zero, b_zero, bias = (node.input(index) if node.has(index) else "" for index in (4, 5, 6))
    product = Product(a, b, a_scale, b_scale, a_zero, b_zero, bias)
    if (refusal := _refusal(node, product)) is not None:
        return node.keep(refusal)
    real = node.type_of(a_scale).dtype
    if real is DType.F32:
        return scaled_product(node, product, node.output())
    # The kernel computes in float32 throughout and rounds the result.
    wide = [_widened(node, name) for name in (a_scale, b_scale, bias)]
    product = Product(a, b, wide[0], wide[1], a_zero, b_zero, wide[2])
    result = node.fresh("f32")
    scaled_product(node, product, result)
    node.cast(result, real, node.output())
    return None


@imports("DynamicQuantizeMatMul", since=1, domain=MICROSOFT)
def dynamic_quantize_matmul(node: NodeView) -> None:
    """DynamicQuantizeMatMul: A, B, b_scale, b_zero_point, bias."""
    names = [node.input(index) if node.has(index) else "" for index in range(5)]
    a, b, b_scale, b_zero, bias = names
    if (refusal := _rank_refusal(node, a, b)) is not None:
        return node.keep(refusal)
    results = [node.fresh(suffix) for suffix in ("quantized", "scale", "zero_point")]
    node.emit(DynamicQuantize(), [a], results)
    codes, scale, zero = results
    scaled_product(node, Product(codes, b, scale, b_scale, zero, b_zero, bias), node.output())
    return None


def _refusal(node: NodeView, product: Product) -> Refusal | None:
    if (refusal := _rank_refusal(node, product.a, product.b)) is not None:
        return refusal
    zero = product.a_zero
    if zero and not _is_single(node.type_of(zero)):
        return Refusal(
            code=Code.PER_AXIS_INPUT,
            detail=f"'{zero}' holds more than one zero point: quantize '{product.a}' per tensor",
        )
    return None


def _rank_refusal(node: NodeView, a: str, b: str) -> Refusal | None:
    if None not in (node.type_of(a).rank, node.type_of(b).rank):
        return None
    detail = f"the rank of '{a}' or '{b}' is not known: declare its shape"
    return Refusal(code=Code.UNSUPPORTED_TYPE, detail=detail)


def _widened(node: NodeView, name: str) -> str:
    """A scale or bias as float32."""
    if not name:
        return ""
    array = node.value(name)
    if array is None:
        return node.cast(name, DType.F32)
    return node.new_constant(f"{name}.f32", array.astype(np.float32))


def scaled_product(node: NodeView, product: Product, result: str) -> None:
    """Write the product, its scales and its bias."""
    op = _product_op(node.type_of(product.b))
    params = _constant_parameters(node, product)
    bias = _row(node, product.bias)
    if params is not None:
        operands = [node.codes(product.a, params[0]), node.codes(product.b, params[1])]
        sums = node.emit(op, operands, [node.fresh("accumulator")])
        node.emit(Dequantize(), [sums, "", "", bias] if bias else [sums], [result])
        return
    zeros = [node.integers(zero) if zero else "" for zero in (product.a_zero, product.b_zero)]
    operands = [node.integers(product.a), node.integers(product.b), "", *zeros]
    sums = node.emit(op, operands, [node.fresh("sums")])
    _at_run_time(node, product, sums, bias, result)


def _at_run_time(node: NodeView, product: Product, sums: str, bias: str, result: str) -> None:
    """Scales that are known at run time, in the order in which onnxruntime multiplies.

    One scale of A and scales of the columns of B are multiplied first; then comes the bias. Any
    others are multiplied after the bias, that of A first.
    """
    joined = [product.a_scale] if _is_single(node.type_of(product.a_scale)) else []
    joined += [product.b_scale] if _joins(node, product) else []
    later = [name for name in (product.a_scale, product.b_scale) if name not in joined]
    joined = [_row(node, name) for name in joined]
    if later and bias:
        joined = joined or [node.new_constant(node.fresh("one"), np.ones((), np.float32))]
        real = node.emit(Dequantize(), [sums, joined[0], "", bias], [node.fresh("real")])
        for name in later:
            real = node.onnx("Mul", [real, name], result if name is later[-1] else "")
        return
    operands = [sums, *joined, *later]
    operands = [*[*operands, ""][:3], bias] if bias else operands
    node.emit(Dequantize(in_turn=bool(later)), operands, [result])


def _joins(node: NodeView, product: Product) -> bool:
    """Whether the kernel multiplies the scales of B with that of A before it reads the sums."""
    scale, rank = node.type_of(product.b_scale), node.type_of(product.b).rank
    return _is_single(scale) or (scale.rank == 1 and rank == 2) or scale.rank == rank


def _row(node: NodeView, name: str) -> str:
    """A constant [1, N] or [1] as [N] or [], which broadcasts to a product of any rank."""
    array = node.value(name) if name else None
    if array is None or array.ndim == 0 or (array.ndim == 1 and array.size > 1):
        return name
    if any(size != 1 for size in array.shape[:-1]):
        return name
    return node.new_constant(
        f"{name}.row", array.reshape(array.shape[-1:] if array.size > 1 else ())
    )


def _constant_parameters(node: NodeView, product: Product) -> list[QuantParams] | None:
    """The parameters of A and B; None unless they are constant and their product is a scale."""
    b = node.type_of(product.b)
    found = [
        _parameters(node, product.a, product.a_scale, product.a_zero, None),
        _parameters(node, product.b, product.b_scale, product.b_zero, (b.rank or 0) - 1),
    ]
    params = [given for given in found if given is not None]
    if len(params) < 2 or not _joins(node, product):
        return None
    kinds = [quantized(given, None) for given in params]
    scale = accumulator_scale(Dense(), kinds[0], kinds[1], params[1].axis or 0, node.label)
    return None if isinstance(scale, Refusal) else params


def _parameters(
    node: NodeView, codes: str, scale: str, zero: str, axis: int | None
) -> QuantParams | None:
    """Parameters of constants: one scale, or a row of scales along `axis`; None for any others."""
    scales, zeros = node.value(scale), node.value(zero) if zero else np.zeros((), np.int64)
    if scales is None or zeros is None or not bool(np.all(np.isfinite(scales) & (scales > 0))):
        return None
    if scales.size == zeros.size == 1:
        rows = [scales.reshape(()), zeros.reshape(())]
    elif axis is not None and axis > 0 and _is_row(scales) and _is_row(zeros):
        rows = list(np.broadcast_arrays(scales.reshape(-1), zeros.reshape(-1)))
    else:
        return None
    known = node.type_of(codes)
    return QuantParams(
        storage=known.dtype, scale=rows[0], zero_point=rows[1], axis=axis if rows[0].ndim else None
    )


def _is_row(array: Array) -> bool:
    return all(size == 1 for size in array.shape[:-1])


def _is_single(kind: TensorType) -> bool:
    return kind.shape is not None and all(size == 1 for size in kind.shape)


def _product_op(b: TensorType) -> MatrixProduct:
    return Dense() if b.rank == 2 else BatchMatMul()
