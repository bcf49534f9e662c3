"""Products by blocks: MatMulInteger over the blocks, else MatMul between DQ and Q."""

from __future__ import annotations

import numpy as np

from intonnx.ir.graph import Node
from intonnx.ir.ops.blocked_dense import BlockedDense
from intonnx.ir.quantization import expand
from intonnx.ir.types import Array, DType
from intonnx.protos import element_of_dtype

from .dense import real_right
from .emitter import Emitter
from .registry import emitters


@emitters.register(BlockedDense)
def blocked_dense(op: BlockedDense, node: Node, out: Emitter) -> None:
    """A batch of integer products, their sum in float32, and a QuantizeLinear."""
    a, b = node.operands
    result = node.results[0]
    blocks = _blocks(node, out) if out.qlinear else None
    if blocks is None:
        real = out.value("MatMul", [out.real(a), real_right(a, b, out)], f"{result}.unquantized")
        return out.quantize(real, op.out, result)
    weights, zero = blocks
    rank = len(out.type(a).shape or ())
    # [..., M, K] -> [..., M, blocks, size] -> [..., blocks, M, size]; 0 copies a size.
    sizes = np.asarray([0] * (rank - 1) + list(weights.shape[:2]), np.int64)
    perm = [*range(rank - 2), rank - 1, rank - 2, rank]
    cut = out.value("Reshape", [out.operand(a), out.constant(sizes, "shape")], f"{a}.blocks")
    first = out.value("Transpose", [cut], f"{a}.by_block", perm=perm)
    matrix = out.constant(weights, f"{b}.blocks")
    zeros = [out.zero_point(out.params(a)), out.constant(zero, "zero_point")]
    sums = out.value("MatMulInteger", [first, matrix, *zeros], f"{result}.sums")
    whole = out.value("Cast", [sums], f"{result}.f32", to=element_of_dtype(DType.F32))
    scales = (out.params(a).scalar_scale * out.params(b).scale)[:, None, :]
    scaled = out.value("Mul", [whole, out.constant(scales, "scale")], f"{result}.scaled")
    axes = out.constant(np.asarray([-3], np.int64), "axes")
    total = out.value("ReduceSum", [scaled, axes], f"{result}.unquantized", keepdims=0)
    return out.quantize(total, op.out.model_copy(update={"expressed": DType.F32}), result)


def _blocks(node: Node, out: Emitter) -> tuple[Array, Array] | None:
    """Weights [blocks, size, N] in the type of the activation, and their one zero point.

    None unless MatMulInteger takes them: 8-bit activations, whole blocks, weights that fit.
    """
    a, kind = out.type(node.operands[0]), out.type(node.operands[1])
    constant, size = out.graph.constants.get(node.operands[1]), kind.params.block or 1
    if constant is None or a.dtype.bits != 8 or a.rank in (None, 1):
        return None
    centred = constant.astype(np.int64) - expand(kind.params, constant.shape)[1]
    low, high = int(centred.min(initial=0)), int(centred.max(initial=0))
    if constant.shape[0] % size or high - low > a.dtype.high - a.dtype.low:
        return None
    shift = a.dtype.low - low
    codes = (centred + shift).astype(a.dtype.numpy).reshape(-1, size, constant.shape[1])
    return codes, np.asarray(shift, a.dtype.numpy)
