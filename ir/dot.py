"""A graph in the DOT language of Graphviz, colored by what is integer and what is float.

Source: graphviz.org, "DOT Language".
"""

from __future__ import annotations

from collections.abc import Iterator

from .coverage import State, node_state
from .graph import Graph, Node
from .text.types import dims
from .types import TensorType

COLORS: dict[State, str] = {
    "integer": "#b7e1c0",
    "float": "#f4b8ae",
    "boundary": "#f6e3a1",
    "folded": "#dddddd",
}


def print_dot(graph: Graph) -> str:
    """The graph as one `digraph`: boxes are operators, edges values with their types.

    A box of an operator that stayed float says why. Constants are named in the box that reads
    them.
    """
    lines = [
        f"digraph {_quoted(graph.name or 'graph')} {{",
        '  node [shape=box, style="rounded,filled", fontname="Helvetica", fillcolor=white];',
        '  edge [fontname="Helvetica", fontsize=9];',
        *(f"  {line}" for line in _lines(graph)),
        "}",
    ]
    return "\n".join(lines) + "\n"


def _lines(graph: Graph) -> Iterator[str]:
    makers: dict[str, str] = {}
    for index, name in enumerate(graph.inputs):
        makers[name] = f"input{index}"
        yield f"input{index} [label={_quoted(name)}, shape=ellipse];"
    for index, node in enumerate(graph.nodes):
        yield f"node{index} [label={_label(graph, node)}, fillcolor={_color(graph, node)}];"
        for name in dict.fromkeys(node.operands):
            if name in makers:
                yield _edge(makers[name], f"node{index}", graph.types[name])
        makers.update({name: f"node{index}" for name in node.results if name})
    for index, name in enumerate(graph.outputs):
        yield f"output{index} [label={_quoted(name)}, shape=ellipse];"
        if name in makers:
            yield _edge(makers[name], f"output{index}", graph.types[name])


def _edge(source: str, target: str, kind: TensorType) -> str:
    return f"{source} -> {target} [label={_quoted(_short(kind))}];"


def _short(kind: TensorType) -> str:
    """The storage type and the shape; per tensor the scale and zero point too."""
    text = f"{kind.dtype.value}{dims(kind.shape)}"
    if kind.quant is None:
        return text
    if kind.quant.per_tensor:
        return f"{text}\n{kind.quant.scalar_scale:.6g}:{kind.quant.scalar_zero_point}"
    return f"{text}\n{kind.quant.scale.size} scales"


def _label(graph: Graph, node: Node) -> str:
    name = node.sources[0].name if node.sources else ""
    held = [f"{n} {_short(graph.types[n])}" for n in node.operands if n in graph.constants]
    state, code, _ = node_state(graph, node)
    reason = [code] if state == "float" else []
    return _quoted("\n".join([node.op.title, *filter(None, [name]), *held, *reason]))


def _color(graph: Graph, node: Node) -> str:
    return _quoted(COLORS[node_state(graph, node)[0]])


def _quoted(text: str) -> str:
    """A quoted string; a line end in it centers the line before."""
    plain = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(_plain(c) for c in plain).replace("\n", "\\n") + '"'


def _plain(character: str) -> str:
    shown = character == "\n" or character.isprintable()
    return character if shown else character.encode("unicode_escape").decode().replace("\\", "\\\\")
