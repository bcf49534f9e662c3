"""What differs between two graphs: parameters, quantizers, weights, operators."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np

from intonnx.ir.graph import Graph, Node, bodies_of
from intonnx.ir.ops.onnx_op import OnnxOp
from intonnx.ir.ops.quantize import Quantize, Requantize
from intonnx.ir.text.types import SHORT, summary
from intonnx.ir.types import Array, QuantParams, Record, TensorType

from .match import Pairs, match

Kind = Literal["signature", "parameters", "type", "weights", "operator", "quantizer"]


class Difference(Record):
    """One difference.

    Attributes:
        kind: "signature" for inputs and outputs that only one graph has, "parameters" for scales
            and zero points, "type" for any other change of a type, "weights" for the values of
            a constant, "operator" for operators and their attributes, "quantizer" for one that
            only one of the graphs has, or that stands at another value.
        name: the value or node in the first graph; in the second when only that has it.
        first: what the first graph has, "" for nothing.
        second: what the second graph has, "" for nothing.
    """

    kind: Kind
    name: str
    first: str
    second: str


def diff(a: Graph, b: Graph) -> tuple[Difference, ...]:
    """All differences, in the order of the first graph; none when the graphs mean the same.

    Names alone are no difference; `match` says which values correspond.
    """
    pairs = match(a, b)
    return (
        *_signatures(a, b, pairs),
        *_types(a, b, pairs),
        *_weights(a, b, pairs),
        *_nodes(a, b, pairs),
    )


def _signatures(a: Graph, b: Graph, pairs: Pairs) -> Iterator[Difference]:
    for what in ("inputs", "outputs"):
        ours, theirs = getattr(a, what), getattr(b, what)
        paired = {pairs.get(name) for name in ours}
        for name in ours:
            if pairs.get(name) not in theirs:
                yield _only(a, name, "signature", f"in the {what}", first=True)
        for name in theirs:
            if name not in paired:
                yield _only(b, name, "signature", f"in the {what}", first=False)


def _only(graph: Graph, name: str, kind: Kind, text: str, *, first: bool) -> Difference:
    text = f"{text}, {_spelled(graph.types[name])}"
    return Difference(
        kind=kind, name=name, first=text if first else "", second="" if first else text
    )


def _types(a: Graph, b: Graph, pairs: Pairs) -> Iterator[Difference]:
    for name, other in pairs.items():
        one, two = a.types[name], b.types[other]
        if one == two:
            continue
        quantized = one.quant is not None and two.quant is not None
        kind: Kind = "parameters" if quantized and one.shape == two.shape else "type"
        first, second = _spelled(one), _spelled(two)
        if one.quant is not None and two.quant is not None and first == second:
            first, second = _first_apart(one.quant, two.quant)
        if name in a.constants and _same_real_values(a, b, name, other):
            second += ", the same real values"
        yield Difference(kind=kind, name=name, first=first, second=second)


def _same_real_values(a: Graph, b: Graph, name: str, other: str) -> bool:
    """Whether quantized constants differ in their codes only, as after code + 128."""
    one, two = a.types[name].quant, b.types[other].quant
    if one is None or two is None or one.block is not None or two.block is not None:
        return False
    codes, others = a.constants[name], b.constants[other]
    if codes.shape != others.shape or not np.array_equal(one.scale, two.scale):
        return False
    centred = codes.astype(np.int64) - one.along(codes.ndim)[1]
    return np.array_equal(centred, others.astype(np.int64) - two.along(others.ndim)[1])


def _spelled(kind: TensorType) -> str:
    """The type with its scales in it; long lists of them are summed up."""
    quant = kind.quant
    if quant is None or quant.scale.size <= SHORT:
        return summary(kind)
    return f"{summary(kind)}, {quant.scale.min():.6g} to {quant.scale.max():.6g}"


def _first_apart(one: QuantParams, two: QuantParams) -> tuple[str, str]:
    """The first scale or zero point that differs, where the summaries do not."""
    apart = (one.scale != two.scale) | (one.zero_point != two.zero_point)
    index = int(np.flatnonzero(apart)[0]) if apart.any() else 0

    def show(params: QuantParams) -> str:
        return f"scale {index} is {params.scale.flat[index]}:{params.zero_point.flat[index]}"

    return show(one), show(two)


def _weights(a: Graph, b: Graph, pairs: Pairs) -> Iterator[Difference]:
    for name, other in pairs.items():
        if name not in a.constants:
            continue
        one, two = a.constants[name], b.constants[other]
        if _same_real_values(a, b, name, other):
            continue
        if one.shape == two.shape and (count := _count_apart(one, two)):
            text = f"{count} of {one.size} elements differ"
            if one.dtype.kind in "iufb" and two.dtype.kind in "iufb":
                largest = np.nanmax(np.abs(one.astype(np.float64) - two.astype(np.float64)))
                text += f", by at most {largest:g}"
            yield Difference(kind="weights", name=name, first="", second=text)


def _count_apart(one: Array, two: Array) -> int:
    same = one == two
    if one.dtype.kind == "f" and two.dtype.kind == "f":
        same |= np.isnan(one) & np.isnan(two)
    return int(np.size(same) - np.count_nonzero(same))


def _nodes(a: Graph, b: Graph, pairs: Pairs) -> Iterator[Difference]:
    back = {other: name for name, other in pairs.items()}
    removed = {id(n): n for n in a.nodes if not any(name in pairs for name in n.results)}
    added = {id(n): n for n in b.nodes if not any(name in back for name in n.results)}
    yield from _moved_quantizers(a, b, removed, added)
    for node in a.nodes:
        if id(node) in removed:
            yield _lone(a, node, first=True)
            continue
        matched = [name for name in node.results if name in pairs]
        partner = next((b.producers.get(pairs[name]) for name in matched), None)
        if partner is not None:
            yield from _compare(node, partner, pairs)
        elif matched:
            first, second = node.op.title, "an input or a constant"
            yield Difference(kind="operator", name=matched[0], first=first, second=second)
    yield from (_lone(b, node, first=False) for node in added.values())


def _moved_quantizers(
    a: Graph, b: Graph, removed: dict[int, Node], added: dict[int, Node]
) -> Iterator[Difference]:
    """Quantizers with one set of parameters that stand at different values; takes them out."""
    free: dict[QuantParams | None, list[Node]] = {}
    for node in filter(_is_quantizer, added.values()):
        free.setdefault(b.types[node.results[0]].quant, []).append(node)
    for node in [node for node in removed.values() if _is_quantizer(node)]:
        alike = free.get(a.types[node.results[0]].quant)
        if not alike:
            continue
        other = alike.pop(0)
        del removed[id(node)], added[id(other)]
        first, second = f"at '{node.operands[0]}'", f"at '{other.operands[0]}'"
        yield Difference(kind="quantizer", name=node.results[0], first=first, second=second)


def _is_quantizer(node: Node) -> bool:
    return isinstance(node.op, Quantize | Requantize)


def _lone(graph: Graph, node: Node, *, first: bool) -> Difference:
    kind: Kind = "quantizer" if _is_quantizer(node) else "operator"
    name = next(filter(None, node.results), "")
    text = f"{node.op.title} of '{node.operands[0]}'" if node.operands else node.op.title
    if kind == "quantizer":
        text += f" to {_spelled(graph.types[name])}"
    return Difference(
        kind=kind, name=name, first=text if first else "", second="" if first else text
    )


def _compare(node: Node, partner: Node, pairs: Pairs) -> Iterator[Difference]:
    name = next(filter(None, node.results))
    if node.op.title != partner.op.title:
        first, second = node.op.title, partner.op.title
        yield Difference(kind="operator", name=name, first=first, second=second)
        return
    bodies, others = bodies_of(node.op), bodies_of(partner.op)
    for key in (key for key in bodies if key in others):
        for found in diff(bodies[key], others[key]):
            yield found.model_copy(update={"name": f"{name}/{key}/{found.name}"})
    ours, theirs = _attributes(node), _attributes(partner)
    for key in {**ours, **theirs}:
        if key not in bodies and ours.get(key) != theirs.get(key):
            first, second = (f"{key}={found.get(key)}" for found in (ours, theirs))
            yield Difference(kind="operator", name=name, first=first, second=second)
    for index, operand in enumerate(node.operands):
        other = partner.operands[index] if index < len(partner.operands) else ""
        if (pairs.get(operand) if operand else "") != other:
            first, second = f"operand {index} is '{operand}'", f"operand {index} is '{other}'"
            yield Difference(kind="operator", name=name, first=first, second=second)


def _attributes(node: Node) -> dict[str, Any]:
    """What the types of the results do not say already."""
    if isinstance(node.op, OnnxOp):
        return dict(node.op.attributes)
    left_out = {"out", "recipe"}
    return {k: getattr(node.op, k) for k in type(node.op).model_fields if k not in left_out}
