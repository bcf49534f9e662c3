"""Change a graph: a mutable workspace with constant-time look-ups, and back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import networkx as nx

from .errors import IntonnxError, ModelFailure
from .graph import Graph, Node, Source
from .op import Op
from .shapes import refined
from .types import Array, TensorType

NodeId = int


class Rewriter:
    """A graph under change. Node identities are stable numbers; names stay unique."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self.types: dict[str, TensorType] = dict(graph.types)
        self.constants: dict[str, Array] = dict(graph.constants)
        self.outputs = graph.outputs
        self.folded: dict[Source, None] = dict.fromkeys(graph.folded)
        self._nodes: dict[NodeId, Node] = {}
        self._producer: dict[str, NodeId] = {}
        self._users: dict[str, dict[NodeId, None]] = {}
        self._order: dict[NodeId, float] = {}
        self._next = 0
        self._fresh: dict[str, int] = {}
        for node in graph.nodes:
            self._insert(node, float(self._next))

    @property
    def graph(self) -> Graph:
        """The graph that the work started from."""
        return self._graph

    def node_ids(self) -> list[NodeId]:
        """The nodes that are there now, in topological order as far as they came so."""
        return sorted(self._nodes, key=self._order.__getitem__)

    def __contains__(self, node_id: NodeId) -> bool:
        return node_id in self._nodes

    def node(self, node_id: NodeId) -> Node:
        """The node with this number."""
        return self._nodes[node_id]

    def producer(self, name: str) -> Node | None:
        """The node that makes a value, or None for inputs and constants."""
        node_id = self._producer.get(name)
        return None if node_id is None else self._nodes[node_id]

    def producer_id(self, name: str) -> NodeId | None:
        """The number of the node that makes a value."""
        return self._producer.get(name)

    def user_ids(self, name: str) -> list[NodeId]:
        """The numbers of the nodes that read a value, each once."""
        return list(self._users.get(name, ()))

    def is_output(self, name: str) -> bool:
        """Whether a caller gets this value."""
        return name in self.outputs

    def fresh(self, base: str) -> str:
        """A name that no value has yet: `base`, or `base` with a number."""
        if base not in self.types:
            return base
        count = self._fresh.get(base, 0)
        while True:
            count += 1
            if (name := f"{base}.{count}") not in self.types:
                self._fresh[base] = count
                return name

    def add_constant(self, name: str, array: Array, kind: TensorType) -> str:
        """Add a constant under a fresh name made from `name`; returns the name it got."""
        name = self.fresh(name)
        self.constants[name] = array
        self.types[name] = kind
        return name

    def emit(
        self,
        op: Op,
        operands: Sequence[str],
        results: Sequence[str],
        *,
        sources: Iterable[Source] = (),
        before: NodeId | None = None,
    ) -> tuple[str, ...]:
        """Add a node; its result types are inferred. `results` must not be made by another node.

        What was known of a result's shape stays known.

        `before` places the node in front of that one, so that later steps meet it in good order.
        """
        node = Node(op, tuple(operands), tuple(results), tuple(dict.fromkeys(sources)))
        try:
            kinds = op.infer([self.types[name] if name else None for name in operands])
        except IntonnxError as error:
            raise error.located(node=node.label) from None
        if len(results) > len(kinds):
            cause = f"{len(results)} results, but the operator has {len(kinds)}"
            raise ModelFailure(cause, node=node.label)
        for name, kind in zip(results, kinds, strict=False):
            if name:
                self.types[name] = refined(kind, self.types.get(name))
        position = float(self._next) if before is None else self._order[before] - 0.5
        self._insert(node, position)
        return tuple(results)

    def remove(self, node_id: NodeId) -> Node:
        """Take a node out. Its results keep their types until something else makes them."""
        node = self._nodes.pop(node_id)
        for result in node.results:
            if self._producer.get(result) == node_id:
                del self._producer[result]
        for operand in node.operands:
            self._users.get(operand, {}).pop(node_id, None)
        return node

    def update(self, node_id: NodeId, node: Node) -> None:
        """Put another node in the place of this one, under the same number."""
        self.remove(node_id)
        self._register(node_id, node)

    def replace_uses(self, old: str, new: str) -> None:
        """Let every node that reads `old` read `new`; a graph output stays the value it was."""
        for node_id in self.user_ids(old):
            node = self._nodes[node_id]
            operands = tuple(new if name == old else name for name in node.operands)
            self.update(node_id, replace(node, operands=operands))

    def rename(self, old: str, new: str) -> None:
        """Give a value that a node makes another name, which no node makes.

        What was known of the new name's shape stays known.
        """
        node_id = self._producer[old]
        node = self._nodes[node_id]
        results = tuple(new if name == old else name for name in node.results)
        self.types[new] = refined(self.types[old], self.types.get(new))
        self.update(node_id, replace(node, results=results))
        self.replace_uses(old, new)

    def bypass(self, node_id: NodeId) -> bool:
        """Take out a node of one operand and one result that are the same; a caller's name stays.

        Returns whether it was done: not where the caller sees both names, or gives the operand.
        """
        node = self._nodes[node_id]
        (operand,), (result,) = node.operands, node.results
        if not self.is_output(result):
            self.remove(node_id)
            self.replace_uses(result, operand)
            return True
        if self.producer(operand) is None or self.is_output(operand):
            return False
        self.remove(node_id)
        self.rename(operand, result)
        return True

    def finish(self) -> Graph:
        """The changed graph: dead nodes and constants dropped, in topological order.

        Raises ModelFailure for a cycle.
        """
        order = self._topological_order()
        live_names = set(self.outputs)
        live: list[Node] = []
        for node_id in reversed(order):
            node = self._nodes[node_id]
            if any(result in live_names for result in node.results):
                live.append(node)
                live_names.update(name for name in node.operands if name)
        live.reverse()
        done = dict.fromkeys(source for node in live for source in node.sources)
        kept = [*self._graph.inputs, *(name for name in self.constants if name in live_names)]
        kept += [result for node in live for result in node.results if result]
        return replace(
            self._graph,
            outputs=self.outputs,
            nodes=tuple(live),
            types={name: self.types[name] for name in kept},
            constants={name: a for name, a in self.constants.items() if name in live_names},
            folded=tuple(source for source in self.folded if source not in done),
        )

    def _topological_order(self) -> list[NodeId]:
        graph: nx.DiGraph[NodeId] = nx.DiGraph()
        graph.add_nodes_from(self._nodes)
        for node_id, node in self._nodes.items():
            for operand in node.operands:
                if (source := self._producer.get(operand)) is not None:
                    graph.add_edge(source, node_id)
        try:
            return list(nx.lexicographical_topological_sort(graph, key=self._order.__getitem__))
        except nx.NetworkXUnfeasible:
            raise ModelFailure("the graph has a cycle") from None

    def _insert(self, node: Node, position: float) -> None:
        node_id = self._next
        self._next += 1
        self._order[node_id] = position
        self._register(node_id, node)

    def _register(self, node_id: NodeId, node: Node) -> None:
        self._nodes[node_id] = node
        # Whatever no live node stands for in the end has been folded.
        self.folded.update(dict.fromkeys(node.sources))
        for result in node.results:
            if result:
                self._producer[result] = node_id
        for operand in node.operands:
            if operand:
                self._users.setdefault(operand, {})[node_id] = None
