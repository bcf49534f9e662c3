"""LayerNormalization and RMSNormalization between DQ and Q."""

from __future__ import annotations

import numpy as np

from intonnx.ir.graph import Node
from intonnx.ir.ops.layer_norm import LayerNorm, RmsNorm

from ._normalization import factors
from ._reduction import reduced_axes
from .emitter import Emitter
from .registry import emitters

_SINCE = {"LayerNormalization": 17, "RMSNormalization": 23}


@emitters.register(LayerNorm)
def layer_norm(op: LayerNorm, node: Node, out: Emitter) -> None:
    """LayerNormalization (opset 17)."""
    _last_axes("LayerNormalization", op, node, out)


@emitters.register(RmsNorm)
def rms_norm(op: RmsNorm, node: Node, out: Emitter) -> None:
    """RMSNormalization (opset 23)."""
    _last_axes("RMSNormalization", op, node, out)


def _last_axes(op_type: str, op: LayerNorm | RmsNorm, node: Node, out: Emitter) -> None:
    others = factors(node, out)
    if out.opset < _SINCE[op_type]:
        return _in_steps(op, node, others, out)
    data = node.operands[:1]
    return out.between(node, op_type, others, operands=data, axis=op.axis, epsilon=op.epsilon)


def _in_steps(op: LayerNorm | RmsNorm, node: Node, others: list[str], out: Emitter) -> None:
    """The means, differences and the square root that the operator stands for."""
    result, rank = node.results[0], out.type(node.operands[0]).rank or 0
    axes = list(range(op.axis % rank - rank, 0))

    def mean(value: str, hint: str) -> str:
        others, attributes = reduced_axes(axes, True, out)
        return out.value("ReduceMean", [value, *others], f"{result}.{hint}", **attributes)

    part = out.real(node.operands[0])
    if isinstance(op, LayerNorm):
        part = out.value("Sub", [part, mean(part, "mean")], f"{result}.difference")
    variance = mean(out.value("Mul", [part, part], f"{result}.square"), "variance")
    expressed = out.params(node.operands[0]).expressed
    epsilon = out.constant(np.asarray(op.epsilon, expressed.numpy), "epsilon")
    total = out.value("Add", [variance, epsilon], f"{result}.total")
    root = out.value("Sqrt", [total], f"{result}.root")
    value = out.value("Div", [part, root], f"{result}.normalized")
    for op_type, other in zip(("Mul", "Add"), others, strict=False):
        value = out.value(op_type, [value, other], f"{result}.{op_type.lower()}")
    out.quantize(value, op.out, result)
