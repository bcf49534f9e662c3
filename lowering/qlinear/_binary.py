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
    """Write DQ -> op -> Q; an operand that is not quantized is read as it is."""
    result = node.results[0]
    real = out.value(op_type, reals(node, out), f"{result}.unquantized")
    out.quantize(real, out.params(result), result)


def reals(node: Node, out: Emitter) -> list[str]:
    """The real values of the operands; one that is not quantized is read as it is."""
    return [
        out.operand(name) if out.type(name).quant is None else out.real(name)
        for name in node.operands
    ]
