"""Narrower storage ranges made explicit: the kernels of ONNX saturate to the whole type."""

from __future__ import annotations

from dataclasses import replace

from intonnx.ir.graph import Graph, Node
from intonnx.ir.names import Names
from intonnx.ir.ops.storage_cast import StorageCast
from intonnx.ir.selection import Selection
from intonnx.ir.types import QuantParams, quantized


def with_explicit_limits(graph: Graph) -> Graph:
    """The graph with an operator of its own for every limit below the range of a type.

    Saturating to the whole type and then to less is saturating to less. Operators that choose among
    codes with just these parameters give no others.
    """
    nodes: list[Node] = []
    types = dict(graph.types)
    names = Names(types)
    for node in graph.nodes:
        out = _narrow_result(graph, node)
        if out is None:
            nodes.append(node)
            continue
        result, *others = node.results
        whole = names.fresh(f"{result}.unlimited")
        full = out.limited(None, None)
        types[whole] = quantized(full, types[result].shape)
        op = node.op.model_copy(update={"out": full})
        nodes += [
            replace(node, op=op, results=(whole, *others)),
            Node(StorageCast(out=out), (whole,), (result,), node.sources),
        ]
    return replace(graph, nodes=tuple(nodes), types=types)


def _narrow_result(graph: Graph, node: Node) -> QuantParams | None:
    """The parameters of a result whose codes the operator has to limit."""
    out = getattr(node.op, "out", None)
    if not isinstance(out, QuantParams) or not out.is_narrow or isinstance(node.op, StorageCast):
        return None
    if isinstance(node.op, Selection) and _all_have(graph, node, out):
        return None
    return out


def _all_have(graph: Graph, node: Node, out: QuantParams) -> bool:
    kinds = [graph.types[name] for name in node.operands if name]
    return all(kind.quant is None or kind.quant == out for kind in kinds)
