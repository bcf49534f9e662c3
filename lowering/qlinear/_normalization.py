"""What the emitters of normalizations share: their scale and bias."""

from __future__ import annotations

from intonnx.ir.graph import Node

from .emitter import Emitter


def factors(node: Node, out: Emitter) -> list[str]:
    """Scale and bias in the type of the real values, "" for an absent one."""
    expressed = out.params(node.operands[0]).expressed
    names = []
    for name in node.operands[1:]:
        array = out.graph.constants.get(name)
        if array is None or out.type(name).dtype is expressed:
            names.append(out.operand(name) if name else "")
        else:
            names.append(out.constant(array.astype(expressed.numpy), f"{name}.{expressed}"))
    return names
