"""Write the nodes of a graph, each by the emitter of its operator, some two as one."""

from __future__ import annotations

from intonnx.ir.errors import STUMBLES, ExportFailure, IntonnxError
from intonnx.ir.graph import Graph, Node
from intonnx.ir.ops.quantize import Dequantize, Requantize

from .emitter import Emitter
from .registry import emitters


def write_nodes(graph: Graph, out: Emitter) -> None:
    """Write every node in order. Raises ExportFailure, naming the node."""
    waiting: dict[int, Node] = {}
    for node in graph.nodes:
        reader = _only_reader(node, graph)
        if reader is None:
            _emit(node, waiting.get(id(node)), out)
        else:
            waiting[id(reader)] = node


def _emit(node: Node, sums: Node | None, out: Emitter) -> None:
    """Write a node, and before it or as one with it the node whose sums it alone reads."""
    for found in filter(None, (sums, node)):
        try:
            if found is sums and emitters.join(found, node, out):
                return
            emitters.emit(found, out)
        except IntonnxError as error:
            raise error.located(node=found.label) from None
        except STUMBLES as error:
            cause = f"{type(error).__name__}: {error}"
            raise ExportFailure(cause, node=found.label) from error


def _only_reader(node: Node, graph: Graph) -> Node | None:
    """The requantize or dequantize that alone reads a node's sums and may be joined with it."""
    result = node.results[0] if len(node.results) == 1 else ""
    users = graph.users.get(result, ())
    if not result or result in graph.outputs or len(users) != 1:
        return None
    reader = users[0]
    if not isinstance(reader.op, Requantize | Dequantize) or reader.operands.count(result) != 1:
        return None
    return reader if emitters.can_join(node, reader, graph.types[result]) else None
