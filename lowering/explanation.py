"""Which operators of an export onnxruntime may compute otherwise than we do, and why."""

from __future__ import annotations

import onnx

from intonnx.ir.graph import Graph
from intonnx.ir.ranges import accumulator_ranges
from intonnx.ir.types import Record

from .qlinear.emitter import Form
from .shaping.pipeline import Cpu

_FIXED_POINT = frozenset({"QLinearAdd", "QLinearGlobalAveragePool"})
"""Kernels that multiply by fixed-point numbers on ARM."""
_EXACT_INSIDE = frozenset({"Cast", "DequantizeLinear", "Mul"})
"""What makes real values exactly: a dequantized code, a sum times its multiplier."""


class InexactNode(Record):
    """An operator of an export whose kernel does not promise our result.

    Attributes:
        node: the name of the exported node.
        op: its operator.
        code: "fixed-point", "saturation" or "float".
        detail: what may differ, by how much, and where.
    """

    node: str
    op: str
    code: str
    detail: str


def inexact_nodes(
    graph: Graph, model: onnx.ModelProto, form: Form, cpu: Cpu
) -> tuple[InexactNode, ...]:
    """The operators of `model`, which `graph` was written as, that may differ, in its order."""
    makers = {name: node for node in model.graph.node for name in node.output}
    found = []
    kept = form == "qdq" or cpu == "x86-vnni"
    saturating = _saturating(graph) if kept and cpu != "arm" else set()
    for node in model.graph.node:
        entry = (
            _fixed_point(node, cpu) or _saturation(node, saturating, cpu) or _float(node, makers)
        )
        if entry is not None:
            code, detail = entry
            found.append(InexactNode(node=node.name, op=node.op_type, code=code, detail=detail))
    return tuple(found)


def _fixed_point(node: onnx.NodeProto, cpu: Cpu) -> tuple[str, str] | None:
    if cpu != "arm" or node.op_type not in _FIXED_POINT:
        return None
    return (
        "fixed-point",
        f"the ARM kernel of {node.op_type} multiplies in fixed point: '{node.output[0]}' may be "
        "one quantum away",
    )


def _saturating(graph: Graph) -> set[str]:
    """What is made of sums that can saturate."""
    sums = {r.value for r in accumulator_ranges(graph) if any(r.int16_saturation)}
    readers = {
        name for value in sums for user in graph.users.get(value, ()) for name in user.results
    }
    return sums | readers


def _saturation(node: onnx.NodeProto, names: set[str], cpu: Cpu) -> tuple[str, str] | None:
    if not any(name in names for name in node.output) or node.op_type == "DequantizeLinear":
        return None
    where = "on a CPU without VNNI" if cpu == "x86-vnni" else "optimized, on a CPU without VNNI"
    return (
        "saturation",
        f"{where}, pairs of products that make '{node.output[0]}' can saturate in 16 bits",
    )


def _float(node: onnx.NodeProto, makers: dict[str, onnx.NodeProto]) -> tuple[str, str] | None:
    """DQ -> op -> Q: the last bit of the float kernel decides near a tie."""
    maker = makers.get(node.input[0]) if node.op_type == "QuantizeLinear" else None
    while maker is not None and maker.op_type == "Concat" and len(maker.input) == 1:
        maker = makers.get(maker.input[0])
    if maker is None or maker.op_type in _EXACT_INSIDE:
        return None
    return (
        "float",
        f"'{node.output[0]}' is quantized from a float {maker.op_type}: one quantum away where a "
        "result within its float error of a tie is rounded the other way",
    )
