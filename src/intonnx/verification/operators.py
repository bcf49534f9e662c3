"""One operator at a time, on the operand values of another execution."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
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
    operands: Callable[[], Mapping[str, Array]] = dict
    """The values of the node's operands: those of the reference, and the sums made of them."""


class Operators:
    """Every operator of a graph as a graph of its own, to be run on given operand values.

    An accumulating operator is run together with each reader of its accumulator: no reference
    needs to have that value, and inside a graph it may exceed the 32 bits of its type.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._steps: list[tuple[tuple[Node, ...], str, Executable]] = []
        for node in graph.nodes:
            if not all(_is_inner(graph, name) for name in node.results if name):
                members = with_accumulators(graph, node)
                label = ", ".join(member.label for member in members)
                self._steps.append((members, label, compile_graph(alone(graph, members))))

    def pairs(self, inputs: Mapping[str, Array], reference: Mapping[str, Array]) -> Iterator[Pair]:
        """Every value that both sides have; an operand that the reference lacks is our own."""
        values: dict[str, Array] = check_inputs(self._graph, inputs)
        for members, label, step in self._steps:
            given = {name: values[name] for name in step.graph.inputs}
            for name, array in step.run(given).items():
                theirs = reference.get(name)
                if theirs is None or theirs.dtype != array.dtype:
                    values[name] = array
                    continue
                operands = partial(self._operands, members, given)
                yield Pair(name, members[-1], label, array, theirs, operands)
                values[name] = theirs

    def _operands(
        self, members: tuple[Node, ...], given: Mapping[str, Array]
    ) -> Mapping[str, Array]:
        if len(members) == 1:
            return given
        sums = compile_graph(alone(self._graph, members[:-1], members[-1].operands))
        return {**given, **sums.run({name: given[name] for name in sums.graph.inputs})}


def _is_inner(graph: Graph, name: str) -> bool:
    """Whether a value is an accumulator that only operators of the graph read."""
    kind = graph.types[name]
    wide = kind.quant is not None and kind.quant.storage.bits > 16
    return wide and name not in graph.outputs and bool(graph.users.get(name))


def with_accumulators(graph: Graph, node: Node) -> tuple[Node, ...]:
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


def alone(graph: Graph, nodes: tuple[Node, ...], wanted: Sequence[str] = ()) -> Graph:
    """A graph of these nodes; its outputs are what is wanted of it, or the last one's results."""
    made = {name for node in nodes for name in node.results if name}
    read = dict.fromkeys(name for node in nodes for name in node.operands if name)
    given = [name for name in read if name not in made]
    return replace(
        graph,
        inputs=tuple(name for name in given if name not in graph.constants),
        outputs=tuple(name for name in wanted or nodes[-1].results if name in made),
        nodes=nodes,
        types={name: graph.types[name] for name in (*given, *made)},
        constants={name: graph.constants[name] for name in given if name in graph.constants},
        defaults={},
        folded=(),
    )
