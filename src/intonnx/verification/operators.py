"""One operator at a time, on the operand values of another execution."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from intonnx.ir.graph import Graph, Node
from intonnx.ir.types import Array
from intonnx.lowering.executable import check_inputs, compile_graph


class Operators:
    """Every node of a graph as a graph of its own, to be run on given operand values."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._steps = [(node, compile_graph(_alone(graph, node))) for node in graph.nodes]

    def results(
        self, inputs: Mapping[str, Array], reference: Mapping[str, Array]
    ) -> Iterator[tuple[Node, str, Array, Array]]:
        """Node, result's name, our array and the reference's, for every value that both have.

        An operand that the reference lacks, such as an accumulator, is our own.
        """
        values: dict[str, Array] = check_inputs(self._graph, inputs)
        for node, step in self._steps:
            ours = step.run({name: values[name] for name in step.graph.inputs})
            for name, array in ours.items():
                theirs = reference.get(name)
                if theirs is None or theirs.dtype != array.dtype:
                    values[name] = array
                    continue
                yield node, name, array, theirs
                values[name] = theirs


def _alone(graph: Graph, node: Node) -> Graph:
    operands = dict.fromkeys(name for name in node.operands if name)
    results = tuple(name for name in node.results if name)
    return replace(
        graph,
        inputs=tuple(name for name in operands if name not in graph.constants),
        outputs=results,
        nodes=(node,),
        types={name: graph.types[name] for name in (*operands, *results)},
        constants={n: graph.constants[n] for n in operands if n in graph.constants},
        defaults={},
        folded=(),
    )
