"""Element-wise operators on two operands, between DQ and Q or as com.microsoft QLinear ones."""

from __future__ import annotations

import numpy as np

from intonnx.ir.graph import Node

from .emitter import CONTRIB, Emitter


def qlinear(
    op_type: str, node: Node, out: Emitter, scales: tuple[float, float] | None = None
) -> None:
    """Write QLinearAdd or QLinearMul: two operands and the result, each with its parameters.

    `scales` are those that the kernel gets for its operands, when they are not those of the types.
    """
    a, b = (out.quantized_operand(name) for name in node.operands)
    if scales is not None:
        first, second = (float(out.params(name).scalar_scale) for name in node.operands)
        out.true_scales[node.results[0]] = (first, second)
        a[1], b[1] = (out.constant(np.asarray(scale, np.float32), "scale") for scale in scales)
    result = node.results[0]
    inputs = [*a, *b, *out.quantization(out.params(result))]
    out.node(op_type, inputs, [result], domain=CONTRIB)


def between(op_type: str, node: Node, out: Emitter) -> None:
    """Write DQ -> op -> Q; an operand that is not quantized is read as it is.

    In the qlinear form no kernel means just this, and in both there is none for several types.
    onnxruntime would use one all the same, after it made s8 codes u8: Q is kept apart.
    """
    result = node.results[0]
    real = out.value(op_type, reals(node, out), f"{result}.unquantized")
    fusible = op_type in ("Add", "Mul") and all(_has_8_bits(name, out) for name in node.operands)
    storages = {out.type(name).dtype for name in (*node.operands, result)}
    if fusible and (out.qlinear or len(storages) > 1):
        real = out.apart(real, result)
    out.quantize(real, out.params(result), result)


def _has_8_bits(name: str, out: Emitter) -> bool:
    kind = out.type(name)
    return kind.quant is not None and kind.dtype.bits == 8


def reals(node: Node, out: Emitter) -> list[str]:
    """The real values of the operands; one that is not quantized is read as it is."""
    return [
        out.operand(name) if out.type(name).quant is None else out.real(name)
        for name in node.operands
    ]
