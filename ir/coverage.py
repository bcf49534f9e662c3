"""What is integer, what is float and why: one record for every node of the imported model."""

from __future__ import annotations

import builtins
from collections import Counter
from typing import Literal

from .graph import Graph, Node, Source, bodies_of
from .reasons import Code
from .types import Record

_SHAPE_READERS = {"onnx.Shape", "onnx.Size"}
"""Operators that never look at the values of their operand."""
State = Literal["integer", "float", "boundary", "folded"]
_WEIGHT: dict[State, int] = {"folded": 0, "boundary": 1, "integer": 2, "float": 3}


class NodeCoverage(Record):
    """The state of one node of the imported model.

    Attributes:
        name: the node's name, or its first result's when it has none.
        op: operator type with its domain unless that is ai.onnx.
        state: "integer"; "float"; "boundary" where values pass between float and integer;
            "folded" when it was computed at import or its work is done by its neighbours.
        code: the reason code for "float", else empty.
        detail: for "float" a sentence naming the tensors and what the author could change.
        multiply_accumulates: products that the node adds up for one item of a symbolic batch.
    """

    name: str
    op: str
    state: State
    code: str = ""
    detail: str = ""
    multiply_accumulates: int = 0


class Coverage(Record):
    """The coverage of a model: `nodes`, and how many of them are in each state."""

    nodes: tuple[NodeCoverage, ...]

    def _repr_html_(self) -> str:
        from .html import coverage_html

        return coverage_html(self)

    @property
    def integer_share(self) -> float:
        """Integer nodes among those that compute, 0 to 1; 1 when none does."""
        return _share(self.integer, self.integer + self.float)

    @property
    def integer_multiply_accumulate_share(self) -> float:
        """Multiply-accumulates in integer nodes among all, 0 to 1; 1 when there are none."""
        by_state = {state: sum(n.multiply_accumulates for n in self.nodes if n.state == state)
                    for state in ("integer", "float")}  # fmt: skip
        return _share(by_state["integer"], sum(by_state.values()))

    def count(self, state: State) -> int:
        """How many nodes are in a state."""
        return Counter(node.state for node in self.nodes)[state]

    @property
    def integer(self) -> int:
        """Nodes that compute on integers."""
        return self.count("integer")

    @property
    def float(self) -> int:
        """Nodes that compute on floats."""
        return self.count("float")

    @property
    def boundary(self) -> int:
        """Nodes at which values enter or leave the integer part."""
        return self.count("boundary")

    @property
    def folded(self) -> int:
        """Nodes that no longer exist on their own."""
        return self.count("folded")


def _share(part: builtins.float, whole: builtins.float) -> builtins.float:
    return part / whole if whole else 1.0


def coverage(graph: Graph) -> Coverage:
    """Say for every node of the imported model whether it is integer, and if not, why.

    A node that became several operators counts as float if any of them is float.
    """
    found: dict[Source, NodeCoverage] = {}
    for node in graph.nodes:
        state, code, detail = node_state(graph, node)
        results = tuple(graph.types[name] for name in node.results if name)
        products = node.op.multiply_accumulates(graph.operand_types(node), results)
        for source in node.sources:
            known = found.get(source)
            if known is None or _WEIGHT[state] > _WEIGHT[known.state]:
                found[source] = NodeCoverage(
                    name=source.name,
                    op=source.op,
                    state=state,
                    code=code,
                    detail=detail,
                    multiply_accumulates=products if source is node.sources[0] else 0,
                )
        for name, body in bodies_of(node.op).items():
            _add_body(found, f"{node.sources[0].name if node.sources else ''}/{name}", body)
    for source in graph.folded:
        found.setdefault(source, NodeCoverage(name=source.name, op=source.op, state="folded"))
    return Coverage(nodes=tuple(found.values()))


def _add_body(found: dict[Source, NodeCoverage], path: str, body: Graph) -> None:
    """The nodes of a body, with the way to it in their names."""
    for inner in coverage(body).nodes:
        name = f"{path}/{inner.name}"
        found[Source(op=inner.op, name=name)] = inner.model_copy(update={"name": name})


def _has_float(graph: Graph) -> bool:
    return any(node_state(graph, node)[0] == "float" for node in graph.nodes)


def node_state(graph: Graph, node: Node) -> tuple[State, str, str]:
    """The state of an operator of the IR, the reason code and the sentence for a float one."""
    if node.op.kind == "boundary":
        return "boundary", "", ""
    bodies = bodies_of(node.op)
    if bodies and not any(map(_has_float, bodies.values())):
        return "integer", "", ""
    operands = [kind for kind in graph.operand_types(node) if kind is not None]
    results = [graph.types[name] for name in node.results if name]
    looked_at = [] if node.op.title in _SHAPE_READERS else operands
    if not any(kind.dtype.is_float for kind in [*looked_at, *results]):
        return "integer", "", ""
    if node.refusal is not None:
        return "float", node.refusal.code, node.refusal.detail
    if node.op.name.startswith("qnn."):
        return "integer", "", ""
    if not any(kind.is_integer and kind.quant is not None for kind in operands):
        near = [graph.producers.get(name) for name in node.operands if name]
        if not any(made is not None and made.op.kind == "boundary" for made in near):
            return "float", Code.FLOAT_MODEL, "no input of this operator comes from a quantizer"
    return "float", Code.NO_INTEGER_FORM, f"no rule makes {node.op.title} an integer operator"
