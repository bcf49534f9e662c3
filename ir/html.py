"""What notebooks show of a graph and of a coverage: small tables in plain HTML."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from .coverage import Coverage, coverage
from .dot import COLORS
from .graph import Graph
from .text.types import TypePrinter

MOST = 50
"""How many float operators are listed."""


def coverage_html(found: Coverage) -> str:
    """Counts and shares, then every operator that stayed float, with its reason."""
    counts = [(_dot(color) + state, str(found.count(state))) for state, color in COLORS.items()]
    share = (
        f"<p>{found.integer_share:.0%} of the computing nodes are integer, with "
        f"{found.integer_multiply_accumulate_share:.0%} of the multiply-accumulates</p>"
    )
    floats = [node for node in found.nodes if node.state == "float"]
    rows = [tuple(map(escape, (n.name, n.op, n.code, n.detail))) for n in floats[:MOST]]
    more = f"<p>and {len(floats) - MOST} more</p>" if len(floats) > MOST else ""
    listed = _table(("float node", "operator", "reason", ""), rows) + more if rows else ""
    return share + _table(("nodes", ""), counts) + listed


def graph_html(graph: Graph) -> str:
    """The signature, then the coverage."""
    types = TypePrinter(())
    rows = [
        (kind, escape(name), escape(types.type(graph.types[name])))
        for kind, names in (("input", graph.inputs), ("output", graph.outputs))
        for name in names
    ]
    title = f"<p><b>{escape(graph.name or 'graph')}</b>, {len(graph.nodes)} operators</p>"
    return title + _table(("", "name", "type"), rows) + coverage_html(coverage(graph))


def _dot(color: str) -> str:
    return f'<span style="color:{color}">&#9632;</span> '


def _table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; its cells are HTML already."""
    head = "".join(f'<th style="text-align:left">{header}</th>' for header in headers)
    cells = ["".join(f'<td style="text-align:left">{cell}</td>' for cell in row) for row in rows]
    body = "".join(f"<tr>{row}</tr>" for row in cells)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
