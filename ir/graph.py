"""The graph: nodes in SSA form, in an order in which every value is made before it is used."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from .op import Op
from .types import Array, Record, TensorType

if TYPE_CHECKING:
    import networkx as nx


Role = Literal["input", "constant", "value", "output"]


class Refusal(Record):
    """Why an operator stayed float.

    Attributes:
        code: one of `reasons.Code`.
        detail: a sentence that names the tensors and what the model's author could change.
    """

    code: str
    detail: str


class Source(Record):
    """A node of the model that was imported.

    Attributes:
        op: operator type, with its domain unless that is ai.onnx: `Conv`, `com.microsoft.QGemm`.
        name: the node's name, or its first result's name when it has none.
    """

    op: str
    name: str

    def __str__(self) -> str:
        return f"{self.op} {self.name}"


@dataclass(frozen=True, slots=True)
class Node:
    """One application of an operator.

    Attributes:
        op: the operator with its attributes.
        operands: names of values; `""` for an absent optional operand.
        results: names of the values it makes.
        sources: the nodes of the imported model whose work it does.
        refusal: why it is not an integer operator, when it was considered and refused.
    """

    op: Op
    operands: tuple[str, ...]
    results: tuple[str, ...]
    sources: tuple[Source, ...] = ()
    refusal: Refusal | None = None

    @property
    def label(self) -> str:
        """The node as errors name it: `'conv1' (qnn.conv2d)`."""
        name = self.sources[0].name if self.sources else self.results[0] if self.results else ""
        return f"'{name}' ({self.op.title})"


def bodies_of(op: Op) -> dict[str, Graph]:
    """The graphs among the attributes of an operator: bodies of If, Loop and Scan.

    Their inputs are those that ONNX gives them, then one for each value that the node captures.
    """
    attributes: dict[str, Any] = getattr(op, "attributes", {})
    return {name: value for name, value in attributes.items() if isinstance(value, Graph)}


@dataclass(frozen=True, eq=False)
class Graph:
    """A typed graph. Passes make new graphs with a `Rewriter`; a graph itself never changes.

    Attributes:
        name: the graph's name.
        inputs: names of the values a caller gives, in order.
        outputs: names of the values a caller gets, in order.
        nodes: in topological order.
        types: the type of every value: inputs, constants and results.
        constants: arrays by value name. Types under 8 bits are held a byte an element.
        defaults: arrays for inputs that a caller may leave out.
        folded: nodes of the imported model that were computed at import or had no effect.
        metadata: what the model said beside the graph (opsets, producer, documentation), as JSON.
    """

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    nodes: tuple[Node, ...]
    types: Mapping[str, TensorType]
    constants: Mapping[str, Array] = field(default_factory=dict[str, Array])
    defaults: Mapping[str, Array] = field(default_factory=dict[str, Array])
    folded: tuple[Source, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @functools.cached_property
    def producers(self) -> Mapping[str, Node]:
        """The node that makes each value; graph inputs and constants have none."""
        return {result: node for node in self.nodes for result in node.results if result}

    @functools.cached_property
    def users(self) -> Mapping[str, Sequence[Node]]:
        """The nodes that read each value, a node once even if it reads the value twice."""
        found: dict[str, dict[int, Node]] = {}
        for node in self.nodes:
            for operand in node.operands:
                if operand:
                    found.setdefault(operand, {})[id(node)] = node
        return {name: tuple(nodes.values()) for name, nodes in found.items()}

    def role(self, name: str) -> Role:
        """What a value is to a caller; an input that is also an output is an output."""
        if name in self.outputs:
            return "output"
        if name in self.inputs:
            return "input"
        return "constant" if name in self.constants else "value"

    def operand_types(self, node: Node) -> list[TensorType | None]:
        """The types of a node's operands, None where one is absent."""
        return [self.types[name] if name else None for name in node.operands]

    def to_networkx(self) -> nx.MultiDiGraph[str]:
        """Values and nodes as one bipartite networkx graph.

        A value is `%name` with the attribute `type`; a node is `op:<index>` with `node`. Edges run
        from operands to nodes (attribute `index`) and from nodes to results.
        """
        import networkx as nx

        graph: nx.MultiDiGraph[str] = nx.MultiDiGraph(name=self.name)
        for name, kind in self.types.items():
            graph.add_node(f"%{name}", type=kind)
        for index, node in enumerate(self.nodes):
            key = f"op:{index}"
            graph.add_node(key, node=node)
            for position, operand in enumerate(node.operands):
                if operand:
                    graph.add_edge(f"%{operand}", key, index=position)
            for position, result in enumerate(node.results):
                if result:
                    graph.add_edge(key, f"%{result}", index=position)
        return graph

    def __str__(self) -> str:
        from .text import print_graph

        # pyright knows this file under two names, and so this class as two.
        return print_graph(self)  # pyright: ignore[reportArgumentType]

    def _repr_html_(self) -> str:
        from .html import graph_html

        return graph_html(self)  # pyright: ignore[reportArgumentType]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the graph to one file (a zip of its text form and an npz of its arrays)."""
        from .archive import save

        save(self, path)  # pyright: ignore[reportArgumentType]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Graph) and self._key() == other._key()

    __hash__ = None  # type: ignore[assignment]

    def _key(self) -> tuple[object, ...]:
        return (
            self.name,
            self.inputs,
            self.outputs,
            self.nodes,
            dict(self.types),
            _content(self.constants),
            _content(self.defaults),
            self.folded,
            dict(self.metadata),
        )


def _content(arrays: Mapping[str, Array]) -> dict[str, tuple[object, ...]]:
    return {
        name: (a.dtype.str, a.shape, a.tolist() if a.dtype.kind == "O" else a.tobytes())
        for name, a in arrays.items()
    }
