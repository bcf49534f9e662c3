"""What the emitters of exact sums share: centred codes, and DQ -> op (-> Q)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from intonnx.ir.graph import Node
from intonnx.ir.ops.quantize import Requantize
from intonnx.ir.types import DType
from intonnx.protos import element_of_dtype

from .emitter import Emitter
from .saturation import real_weights


def centred(name: str, out: Emitter, dtype: DType) -> str:
    """The whole numbers code - zero point of a quantized value, as int32 or int64."""
    params = out.params(name)
    hint = f"{name}.{dtype}"
    wide = out.value("Cast", [out.operand(name)], hint, to=element_of_dtype(dtype))
    zero = params.along(out.type(name).rank or 0)[1]
    if not np.any(zero):
        return wide
    return out.value("Sub", [wide, out.constant(zero.astype(dtype.numpy), "zero_point")], hint)


def needs_distance(node: Node, out: Emitter) -> bool:
    """Whether Q is kept apart from an operator of which onnxruntime would make an integer one.

    In the qlinear form the kernels have been found not to do. There are none for 2-bit weights, of
    which it makes a model that does not load.
    """
    bits = [out.type(name).dtype.bits for name in node.operands[:2]]
    return max(bits) <= 8 and (out.qlinear or min(bits) < 4)


def between(
    node: Node,
    consumer: Node,
    out: Emitter,
    op_type: str,
    others: Sequence[str] = (),
    *,
    pairs: Sequence[int] = (),
    **attributes: Any,
) -> bool:
    """Write an accumulating operator and the reader of its sums as DQ -> op (-> Q); True.

    In the qlinear form the kernels have been found not to do. onnxruntime would use them for codes
    of 8 bits or less all the same, so the quantizer is kept apart from the operator there.

    Operand 2 is a bias, and takes the parameters of the sums; `others` are names of ONNX; `pairs`
    are the axes of the weights along which a kernel may add products in pairs.
    """
    result = consumer.results[0]
    quantizes = isinstance(consumer.op, Requantize)
    target = out.fresh(f"{result}.unquantized") if quantizes else result
    inputs = [out.real(node.operands[0])]
    if len(node.operands) > 1:
        inputs.append(real_weights(node.operands[0], node.operands[1], pairs, out))
    if bias := [*node.operands, "", ""][2]:
        inputs.append(out.real_bias(bias, out.params(node.results[0])))
    out.node(op_type, [*inputs, *others], [target], **attributes)
    if quantizes:
        if needs_distance(node, out):
            target = out.apart(target, result)
        out.quantize(target, out.params(result), result)
    return True
