"""Bodies of If, Loop and Scan as graphs inside the ONNX graph, which share its names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import onnx
from onnx import helper

from intonnx.ir.graph import Graph
from intonnx.lowering.limits import with_explicit_limits
from intonnx.protos import proto_of

from .emitter import Emitter
from .writing import write_nodes


def body_proto(body: Graph, captured: Sequence[str], out: Emitter) -> onnx.GraphProto:
    """A body as ONNX; `captured` are the ONNX names of the values that its node captures.

    A name inside may not be one outside: those that are get a number.
    """
    own = body.inputs[: len(body.inputs) - len(captured)]
    names = dict(zip(body.inputs[len(own) :], captured, strict=True))
    names |= {name: out.fresh(name) for name in body.types if name not in names}
    graph = with_explicit_limits(renamed(body, names))
    inner = out.inner(graph)
    write_nodes(graph, inner)
    outputs = _outputs(graph, inner)
    out.domains |= inner.domains
    return helper.make_graph(
        inner.nodes,
        body.name,
        [helper.make_value_info(names[n], proto_of(body.types[n])) for n in own],
        [
            helper.make_value_info(name, proto_of(graph.types[value]))
            for name, value in zip(outputs, graph.outputs, strict=True)
        ],
        list(inner.initializers.values()),
    )


def _outputs(graph: Graph, out: Emitter) -> list[str]:
    """Names of the outputs: what no node of the body makes, or one makes for two, is copied."""
    made = {result for node in graph.nodes for result in node.results}
    names: list[str] = []
    for value in graph.outputs:
        if value in made and value not in names:
            names.append(out.operand(value))
        else:
            names.append(out.value("Identity", [out.operand(value)], f"{value}.copy"))
    return names


def renamed(graph: Graph, names: Mapping[str, str]) -> Graph:
    """The graph with other names for its values, also for those that its own bodies capture."""
    new: Callable[[str], str] = lambda name: names[name] if name else ""  # noqa: E731
    return replace(
        graph,
        inputs=tuple(map(new, graph.inputs)),
        outputs=tuple(map(new, graph.outputs)),
        nodes=tuple(
            replace(n, operands=tuple(map(new, n.operands)), results=tuple(map(new, n.results)))
            for n in graph.nodes
        ),
        types={new(name): kind for name, kind in graph.types.items()},
        constants={new(name): array for name, array in graph.constants.items()},
        defaults={},
    )
