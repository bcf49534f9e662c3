"""One operator at a time, on the operand values of another execution."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from intonnx.ir.graph import Graph, Node
from intonnx.ir.types import Array
from intonnx.lowering.executable import Executable, check_inputs, compile_graph


class Pair(NamedTuple):
    """One value twice: `ours`, and `theirs` of the reference."""

    name: str
    node: Node
    label: str
    """The operators between the reference's values and this one, as errors name them."""
    ours: Array
    theirs: Array


class Operators:
    """Every operator of a graph as a graph of its own, to be run on given operand values.

    An accumulating operator is run together with each reader of its accumulator: no reference
    needs to have that value, and inside a graph it may exceed the 32 bits of its type.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._steps: list[tuple[Node, str, Executable]] = []
        for node in graph.nodes:
            if not all(_is_inner(graph, name) for name in node.results if name):
                members = _with_accumulators(graph, node)
                label = ", ".join(member.label for member in members)
                self._steps.append((node, label, compile_graph(_alone(graph, members))))

    def pairs(self, inputs: Mapping[str, Array], reference: Mapping[str, Array]) -> Iterator[Pair]:
        """Every value that both sides have; an operand that the reference lacks is our own."""
        values: dict[str, Array] = check_inputs(self._graph, inputs)
        for node, label, step in self._steps:
            ours = step.run({name: values[name] for name in step.graph.inputs})
            for name, array in ours.items():
                theirs = reference.get(name)
                if theirs is None or theirs.dtype != array.dtype:
                    values[name] = array
                    continue
                yield Pair(name, node, label, array, theirs)
                values[name] = theirs


def _is_inner(graph: Graph, name: str) -> bool:
    """Whether a value is an accumulator that only operators of the graph read."""
    kind = graph.types[name]
    wide = kind.quant is not None and kind.quant.storage.bits > 16
    return wide and name not in graph.outputs and bool(graph.users.get(name))


def _with_accumulators(graph: Graph, node: Node) -> tuple[Node, ...]:
    """The node, after those that make the accumulators that it reads."""
    found: dict[int, Node] = {}

    def visit(reader: Node) -> None:
        for name in reader.operands:
            maker = graph.producers.get(name)
            if maker is not None and id(maker) not in found and _is_inner(graph, name):
                visit(maker)
        found[id(reader)] = reader

    visit(node)
    return tuple(found.values())


def _alone(graph: Graph, nodes: tuple[Node, ...]) -> Graph:
    """A graph of these nodes; its outputs are the results of the last one."""
    made = {name for node in nodes for name in node.results if name}
    read = dict.fromkeys(name for node in nodes for name in node.operands if name)
    given = [name for name in read if name not in made]
    return replace(
        graph,
        inputs=tuple(name for name in given if name not in graph.constants),
        outputs=tuple(name for name in nodes[-1].results if name),
        nodes=nodes,
        types={name: graph.types[name] for name in (*given, *made)},
        constants={name: graph.constants[name] for name in given if name in graph.constants},
        defaults={},
        folded=(),
    )
