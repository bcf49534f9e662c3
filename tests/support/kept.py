"""What a way through exports and imports must keep: parameters of values, and codes of weights."""

from __future__ import annotations

from typing import Any

from intonnx.ir.graph import Graph, bodies_of

Kept = tuple[tuple[object, ...], bytes | None]


def parameters(graph: Graph) -> dict[str, Kept]:
    """The parameters of every quantized value by its name, and the codes of constants.

    Sums are left out: their scales are products, and their names are nobody's.
    """
    found: dict[str, Kept] = {}
    for name, kind in graph.types.items():
        if kind.quant is not None and kind.dtype != "i32":
            q, codes = kind.quant, graph.constants.get(name)
            said = (q.storage, q.scale.tobytes(), q.zero_point.tobytes(), q.axis, q.block)
            found[name] = (said, None if codes is None else codes.tobytes())
    for node in graph.nodes:
        for body in bodies_of(node.op).values():
            found.update(parameters(body))
    return found


def lost(before: Graph, after: Graph) -> list[str]:
    """The values of `before` that have other parameters or codes in `after`, or are not there.

    A value may have another name when its parameters and codes are there; one that was computed may
    be a constant.
    """
    wanted, found = parameters(before), parameters(after)
    contents = set(found.values())
    missing: list[str] = []
    for name, (said, codes) in wanted.items():
        own = found.get(name)
        same = own is not None and own[0] == said and codes in (None, own[1])
        if not same and (own is not None or (said, codes) not in contents):
            missing.append(name)
    return missing


def described(graph: Graph, names: list[str]) -> list[Any]:
    """The types of values, to show what was lost."""
    return [(name, str(graph.types[name])) for name in names if name in graph.types]
