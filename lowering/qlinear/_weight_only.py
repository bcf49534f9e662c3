"""MatMulNBits: a product of floats and of constant weights with a scale for each block of rows.

Of DequantizeLinear -> MatMul with such weights onnxruntime makes one that quantizes the floats too,
which the model never did. Written as MatMulNBits, floats stay floats.
"""

from __future__ import annotations

import numpy as np

from intonnx.ir.graph import Node
from intonnx.ir.ops.onnx_op import OnnxOp
from intonnx.ir.ops.quantize import Dequantize
from intonnx.ir.packing import packed
from intonnx.ir.types import DType, static_shape

from .emitter import CONTRIB, Emitter

_BITS = {DType.U2: 2, DType.U4: 4, DType.U8: 8}
_SMALLEST_BLOCK = 16
_FLOAT_ARITHMETIC = 1
"""The `accuracy_level` of float32."""


def only_weights(node: Node, out: Emitter) -> bool:
    """Whether a dequantize makes weights that `matmul_nbits` reads in their codes everywhere."""
    readers = out.graph.users.get(node.results[0], ())
    unread = node.results[0] in out.graph.outputs or not readers
    return not unread and all(_weights(reader, out) is node for reader in readers)


def matmul_nbits(node: Node, out: Emitter) -> bool:
    """Write a kept MatMul with its weights as MatMulNBits, if it is one; else write nothing."""
    weights = _weights(node, out)
    if weights is None:
        return False
    name = weights.operands[0]
    params, codes, bits = out.params(name), out.graph.constants[name], _BITS[out.type(name).dtype]
    rows, columns = codes.shape
    block, count = params.block or 1, params.scale.shape[0]
    whole = np.zeros((columns, count * block), np.uint8)
    whole[:, :rows] = codes.T
    zeros = params.zero_point.T
    weight = out.constant(packed(whole.reshape(columns, count, block), bits), f"{name}.packed")
    scale = out.constant(params.scale.T.astype(params.expressed.numpy), "scale")
    middle = bool(np.all(zeros == 1 << (bits - 1)))
    zero = "" if middle else out.constant(packed(zeros, bits), "zero_points")
    inputs = [out.operand(node.operands[0]), weight, scale, zero]
    out.node("MatMulNBits", inputs, node.results, domain=CONTRIB, K=rows, N=columns, bits=bits,
             block_size=block, accuracy_level=_FLOAT_ARITHMETIC)  # fmt: skip
    return True


def _weights(node: Node, out: Emitter) -> Node | None:
    """The dequantize of the right side of a MatMul, where MatMulNBits takes its codes."""
    op = node.op
    if not (out.contrib and isinstance(op, OnnxOp)) or op.domain or op.op_type != "MatMul":
        return None
    a, b = node.operands
    made = out.graph.producers.get(b)
    if made is None or a == b or not isinstance(made.op, Dequantize) or len(made.operands) != 1:
        return None
    kind, block = out.type(made.operands[0]), out.params(made.operands[0]).block or 0
    power = block >= _SMALLEST_BLOCK and block & (block - 1) == 0
    known = made.operands[0] in out.graph.constants and kind.dtype in _BITS
    fits = power and known and kind.params.axis == 0 and len(static_shape(kind.shape) or ()) == 2
    real = kind.params.expressed
    return made if fits and real in (DType.F32, DType.F16) and out.type(a).rank else None
