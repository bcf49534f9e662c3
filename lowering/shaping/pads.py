"""Pads become those of the convolution that reads them."""

from __future__ import annotations

from dataclasses import replace

from intonnx.ir.graph import Graph, Node
from intonnx.ir.ops.conv import Conv
from intonnx.ir.ops.pad import Pad


def merged_pads(graph: Graph) -> tuple[Graph, bool]:
    """A convolution pads with the zero point itself: it takes over a Pad with just this fill.

    A Pad that something else reads too stays for that.
    """
    nodes = [_merged(graph, node) for node in graph.nodes]
    if all(after is before for after, before in zip(nodes, graph.nodes, strict=True)):
        return graph, False
    read, gone = {*graph.outputs}, set[str]()
    kept: list[Node] = []
    for node in reversed(nodes):
        if isinstance(node.op, Pad) and node.results[0] not in read:
            gone.add(node.results[0])
        else:
            kept.append(node)
            read.update(node.operands)
    types = {name: kind for name, kind in graph.types.items() if name not in gone}
    return replace(graph, nodes=tuple(reversed(kept)), types=types), True


def _merged(graph: Graph, node: Node) -> Node:
    while (before := _before(graph, node)) is not None:
        node = before
    return node


def _before(graph: Graph, node: Node) -> Node | None:
    """The convolution with the pads of the Pad in front of it, None where there is no such one."""
    op = node.op
    pad = graph.producers.get(node.operands[0]) if isinstance(op, Conv) else None
    if not isinstance(op, Conv) or pad is None or not isinstance(pad.op, Pad):
        return None
    if op.auto_pad not in ("NOTSET", "VALID") or pad.op.mode != "constant":
        return None
    kind = graph.types[pad.operands[0]]
    zero = kind.quant.scalar_zero_point if kind.quant is not None else None
    sides = (pad.op.before, pad.op.after)
    outside = any(amount for side in sides for amount in side[:2])
    if zero is None or pad.op.fill != zero or outside or min(map(min, sides)) < 0:
        return None
    added = (*pad.op.before[2:], *pad.op.after[2:])
    own = op.pads if op.auto_pad == "NOTSET" else (0,) * len(added)
    pads = tuple(a + b for a, b in zip(own, added, strict=True))
    merged = op.model_copy(update={"pads": pads, "auto_pad": "NOTSET"})
    return replace(
        node,
        op=merged,
        operands=(pad.operands[0], *node.operands[1:]),
        sources=(*pad.sources, *node.sources),
    )
