"""Which operators an accumulating one applies to its sums itself, while they are in the cache.

Operators that work on each element alone, in turn, as long as nobody else reads what is between
them: requantize, clip, look up, dequantize. No pattern is named here: the kernels say which
operators these are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from intonnx.ir.graph import Graph, Node
from intonnx.ir.types import TensorType

from .integer.kernel import kernels


def chains(graph: Graph) -> Iterator[tuple[Node, ...]]:
    """The nodes of a graph in order, each followed by those that it applies itself."""
    reads = Counter(name for node in graph.nodes for name in node.operands)
    reads.update(graph.outputs)
    taken: set[int] = set()
    for node in graph.nodes:
        if id(node) in taken:
            continue
        chain = [node]
        axis = kernels.channel_axis(node.op)
        while axis is not None:
            follower = _follower(graph, chain[-1], axis, reads)
            if follower is None:
                break
            chain.append(follower)
            taken.add(id(follower))
        yield tuple(chain)


def _follower(graph: Graph, node: Node, axis: int, reads: Counter[str]) -> Node | None:
    """The only reader of a node's result, when it can be applied to blocks of it."""
    (result,) = node.results
    users = graph.users.get(result, ())
    if reads[result] != 1 or len(users) != 1 or len(users[0].results) != 1:
        return None
    user = users[0]
    others = user.operands[1:]
    alone = user.operands[0] == result and all(not n or n in graph.constants for n in others)
    if not alone or not kernels.is_elementwise(user.op):
        return None
    if any(name and not _is_table(graph.types[name]) for name in others):
        return None
    kinds = graph.types[result], graph.types[user.results[0]]
    return user if all(_along(kind, axis) for kind in kinds) else None


def _is_table(kind: TensorType) -> bool:
    """Whether a constant has one axis of 256 entries or more, or one element: no broadcasting."""
    return kind.shape is not None and (kind.shape == () or kind.shape in ((256,), (65536,)))


def _along(kind: TensorType, axis: int) -> bool:
    """Whether the parameters of a value do not vary, or along this axis."""
    if kind.rank is None or kind.quant is None:
        return kind.rank is not None
    params = kind.quant
    same_axis = params.axis is None or params.axis % kind.rank == axis % kind.rank
    return params.block is None and (same_axis or params.scale.size == 1)
