"""QLinearMatMul, QGemm, MatMulInteger, and MatMul between DQ and Q."""

from __future__ import annotations

import numpy as np

from intonnx.ir.graph import Node
from intonnx.ir.ops.dense import BatchMatMul, Dense
from intonnx.ir.ops.quantize import Requantize
from intonnx.ir.types import Array, DType, TensorType, static_shape

from ._accumulator import needs_distance
from ._scaled_products import matmul_integer_to_float
from .emitter import CONTRIB, Emitter
from .registry import emitters
from .saturation import exact_codes, note_scales, note_storage, real_weights


@emitters.joins(Dense, BatchMatMul, scaled=True)
def join_product(op: Dense | BatchMatMul, node: Node, consumer: Node, out: Emitter) -> bool:
    """QLinearMatMul, QGemm for a bias, MatMulIntegerToFloat; in the QDQ form DQ -> MatMul (-> Q).

    A product of plain integers is joined with its scales only.
    """
    a, b = out.type(node.operands[0]), out.type(node.operands[1])
    constant = node.operands[1] in out.graph.constants
    if a.quant is not None and not (out.qlinear and _integer_operator(a, b, constant)):
        return _between(node, consumer, out)
    if matmul_integer_to_float(node, consumer, _right, _right_codes, out):
        return True
    if len(consumer.operands) > 1:
        return False
    result = out.type(consumer.results[0])
    mixed = b.dtype is not a.dtype and not constant
    if mixed or (result.quant is not None and not _fits(result, a)):
        return False
    if result.quant is not None and not [*node.operands, ""][2]:
        inputs = [
            *out.quantized_operand(node.operands[0]),
            *_right(node, out),
            *out.quantization(result.quant),
        ]
        out.node("QLinearMatMul", inputs, consumer.results)
        return True
    return _qgemm(node, consumer, out)


def _fits(result: TensorType, a: TensorType) -> bool:
    """Whether the kernels give this result for a left side of type `a`."""
    return result.dtype is a.dtype and result.params.per_tensor


def _integer_operator(a: TensorType, b: TensorType, constant: bool) -> bool:
    """Whether MatMulInteger takes these types: a right side under 8 bits only as a constant."""
    bits = b.dtype.bits
    right = bits == 8 or (bits < 8 and constant)
    # One zero point for each column of each matrix of a batch takes the batch's size.
    columns = b.params.per_tensor or b.rank == 2 or static_shape(b.shape) is not None
    return a.dtype.bits == 8 and right and columns


def _qgemm(node: Node, consumer: Node, out: Emitter) -> bool:
    """QGemm: matrices only, a bias of whole numbers, codes or float32."""
    a, b, bias = [*node.operands, ""][:3]
    result = out.type(consumer.results[0])
    matrices = out.type(a).rank == out.type(b).rank == 2
    if not (out.contrib and matrices) or (result.quant is None and result.dtype is not DType.F32):
        return False
    inputs = [
        *out.quantized_operand(a),
        *_right(node, out),
        out.operand(bias) if bias else "",
        *([] if result.quant is None else out.quantization(result.quant)),
    ]
    out.node("QGemm", inputs, consumer.results, domain=CONTRIB)
    return True


def _right(node: Node, out: Emitter) -> list[str]:
    """Codes, scale and zero point of the right side."""
    codes, zero = _right_codes(node, out)
    kind = out.type(node.operands[1])
    return [codes, out.constant(_columns(kind.params.scale, kind), "scale"), zero]


def _right_codes(node: Node, out: Emitter) -> tuple[str, str]:
    """The right side and its zero point, without the danger of `exact_codes`."""
    name, b_zero = node.operands[1], [*node.operands, "", "", ""][4]
    kind = out.type(name)
    codes, zeros = exact_codes(node, 1, [max(0, (kind.rank or 0) - 2)], out, b_zero)
    if zeros is None:
        zero = out.zero_point_operand(name, b_zero)
    else:
        zero = out.constant(_columns(zeros, kind), "zero_point")
    mixed = out.type(node.operands[0]).dtype is DType.U8 and kind.dtype is DType.I8
    unresolved = zeros is None or name not in out.graph.constants
    if mixed and unresolved and out.runtime == "onnxruntime" and out.pairs_saturate:
        return out.moved_up(codes), out.moved_up(zero)
    return codes, zero


def _between(node: Node, consumer: Node, out: Emitter) -> bool:
    """DQ -> MatMul (-> Add) -> Q, or DQ -> Gemm -> Q for matrices with a bias."""
    a, b, bias = [*node.operands, ""][:3]
    result, added = consumer.results[0], [*consumer.operands, "", "", ""][3]
    quantizes = isinstance(consumer.op, Requantize)
    target = out.fresh(f"{result}.unquantized") if quantizes or added else result
    operands = [out.real(a), real_right(a, b, out)]
    addend = out.real_bias(bias, out.params(node.results[0])) if bias else ""
    if addend and out.type(a).rank == out.type(b).rank == 2:
        out.node("Gemm", [*operands, addend], [target])
    elif addend:
        product = out.value("MatMul", operands, f"{target}.product")
        if out.type(a).dtype is DType.I8:
            # onnxruntime 1.32 makes a Gemm of the two, and then no valid u8 quantizers around it.
            product = out.apart(product, result)
        out.node("Add", [product, addend], [target])
    else:
        out.node("MatMul", operands, [target])
    if quantizes:
        if needs_distance(node, out):
            target = out.apart(target, result)
        out.quantize(target, out.params(result), result)
    if added:
        out.node("Add", [target, out.operand(added)], [result])
    return True


def real_right(a: str, b: str, out: Emitter) -> str:
    """The real value of the right side.

    Beside 16-bit codes, and where they are blocked, constant weights are widened to 16 bits for
    onnxruntime: of narrower ones it makes a product with a float matrix, for which it quantizes the
    left side anew.
    """
    kind, constant = out.type(b), out.graph.constants.get(b)
    meant = out.type(a).dtype.bits > 8 or kind.params.block is not None
    if constant is None or not (out.runtime == "onnxruntime" and meant and kind.dtype.bits <= 8):
        return real_weights(a, b, [max(0, (kind.rank or 0) - 2)], out)
    wide = kind.params.model_copy(update={"storage": DType.I16, "low": None, "high": None})
    codes = out.constant(constant.astype(np.int16), f"{b}.wide")
    note_storage(codes, b, kind.dtype, kind.params.zero_point, out)
    inputs = [
        codes,
        out.scale(wide),
        out.zero_point(wide),
    ]
    return out.value("DequantizeLinear", inputs, f"{b}.real", axis=wide.axis, block_size=wide.block)


@emitters.register(Dense, BatchMatMul)
def matrix_product(op: Dense | BatchMatMul, node: Node, out: Emitter) -> None:
    """MatMulInteger and an integer addition of the bias: the accumulator itself."""
    names = [*node.operands, "", "", ""][:4]
    result = node.results[0]
    sums = out.fresh(f"{result}.sum") if names[2] else result
    codes, zero = _right_codes(node, out)
    note_scales(node, codes, out)
    left_zero = out.zero_point_operand(names[0], names[3])
    out.node("MatMulInteger", [out.operand(names[0]), codes, left_zero, zero], [sums])
    if names[2]:
        out.node("Add", [sums, out.operand(names[2])], [result])


def _columns(array: Array, kind: TensorType) -> Array:
    """Scales or zero points as the kernels take them: of a batch, one for each of its columns."""
    shape = static_shape(kind.shape)
    if array.ndim == 0 or shape is None or len(shape) < 3:
        return array
    return np.broadcast_to(array, (*shape[:-2], 1, shape[-1]))
