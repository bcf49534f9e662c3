"""Pair the values of two graphs: by name first, then by what computes them."""

from __future__ import annotations

from collections import defaultdict

from intonnx.ir.graph import Graph, Node
from intonnx.ir.types import TensorType

Pairs = dict[str, str]
"""From values of the first graph to those of the second; no value stands in two pairs."""


def match(a: Graph, b: Graph) -> Pairs:
    """The values of `b` that correspond to values of `a`.

    Values of one name correspond when both are constants or neither is. Inputs and outputs without
    such a partner correspond by position. Of the others, results correspond when operators of one
    kind make them from corresponding operands; then their constants do too, by position.
    """
    pairs = {
        name: name
        for name in a.types
        if name in b.types and (name in a.constants) == (name in b.constants)
    }
    taken = set(pairs.values())
    for ours, theirs in ((a.inputs, b.inputs), (a.outputs, b.outputs)):
        if len(ours) == len(theirs):
            for one, other in zip(ours, theirs, strict=True):
                _pair(pairs, taken, one, other)
    _by_structure(a, b, pairs, taken)
    return pairs


def _pair(pairs: Pairs, taken: set[str], one: str, other: str) -> None:
    if one and other and one not in pairs and other not in taken:
        pairs[one] = other
        taken.add(other)


def _by_structure(a: Graph, b: Graph, pairs: Pairs, taken: set[str]) -> None:
    waiting: defaultdict[tuple[object, ...], list[Node]] = defaultdict(list)
    for node in b.nodes:
        if any(result and result not in taken for result in node.results):
            waiting[_key(node, [_flowing(b, name) for name in node.operands])].append(node)
    for node in a.nodes:
        if all(not result or result in pairs for result in node.results):
            _pair_constants(a, b, node, pairs, taken)
            continue
        operands = [_flowing(a, name) for name in node.operands]
        found = waiting.get(_key(node, [pairs.get(n) if n else n for n in operands]))
        partner = _first_alike(a, b, node, found or [])
        if partner is None or found is None:
            continue
        found.remove(partner)
        for one, other in zip(
            [*node.results, *node.operands], [*partner.results, *partner.operands], strict=True
        ):
            if (one in a.constants) == (other in b.constants):
                _pair(pairs, taken, one, other)


def _pair_constants(a: Graph, b: Graph, node: Node, pairs: Pairs, taken: set[str]) -> None:
    """Constants at one position of corresponding operators of one kind."""
    partner = next((b.producers.get(pairs[name]) for name in node.results if name), None)
    if partner is None or partner.op.title != node.op.title:
        return
    for one, other in zip(node.operands, partner.operands, strict=False):
        if one in a.constants and other in b.constants:
            _pair(pairs, taken, one, other)


def _key(node: Node, operands: list[str | None]) -> tuple[object, ...]:
    return (node.op.title, len(node.results), *operands)


def _flowing(graph: Graph, name: str) -> str | None:
    """The operand, or None for a constant: those need not be the same."""
    return None if name in graph.constants else name


def _first_alike(a: Graph, b: Graph, node: Node, candidates: list[Node]) -> Node | None:
    """The first candidate whose constants have the shapes of the node's."""
    wanted = [_shape(a.types.get(name)) for name in node.operands]
    for candidate in candidates:
        if [_shape(b.types.get(name)) for name in candidate.operands] == wanted:
            return candidate
    return None


def _shape(kind: TensorType | None) -> object:
    return None if kind is None else kind.shape
