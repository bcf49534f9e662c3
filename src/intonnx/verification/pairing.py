"""Pair the values of a quantized graph with those of the float model that it was made from.

By name first: a quantizer keeps the name of what it quantizes, as its own input or with a suffix.
What is left is paired by structure: the convolutions and matrix products of both graphs, in graph
order, when their weights have the same sizes.
"""

from __future__ import annotations

from collections.abc import Iterable

import onnx

from intonnx.ir.graph import Graph, Node
from intonnx.ir.ops.onnx_op import OnnxOp

_SUFFIXES = ("_QuantizeLinear_Output", "_quantized", ".quantized", "_q")
_PRODUCTS = ("Conv", "ConvTranspose", "MatMul", "Gemm")
_LIMITS = ("Relu", "Clip", "BatchNormalization", "Add")


def has_codes(graph: Graph, name: str) -> bool:
    """Whether a value is quantized, and no accumulator."""
    quant = graph.types[name].quant
    return quant is not None and quant.storage.bits <= 16


def paired(graph: Graph, original: onnx.ModelProto | None, other: Graph) -> dict[str, str]:
    """The values of `other`, a float graph, that values of a quantized graph stand for."""
    reals = {
        node.output[0]: node.input[0]
        for node in ([] if original is None else original.graph.node)
        if node.op_type == "QuantizeLinear"
    }
    known = {name for name, kind in other.types.items() if kind.dtype.is_float}
    pairs: dict[str, str] = {}
    taken: set[str] = set()
    for name in _results(graph):
        candidates = [reals.get(name, ""), name]
        candidates += [name.removesuffix(end) for end in _SUFFIXES if name.endswith(end)]
        found = next((c for c in candidates if c in known and c not in other.constants), None)
        if found is not None:
            pairs[name] = found
            taken.add(found)
    for name, found in pairs.items():
        if _is_limited(graph, name) and (limited := _behind_limit(other, found)) not in taken:
            pairs[name] = limited
    return _by_products(graph, other, pairs, taken)


def _is_limited(graph: Graph, name: str) -> bool:
    """Whether the codes stand for no negative value, as those behind a relu that joined them."""
    quant = graph.types[name].quant
    return quant is not None and quant.per_tensor and quant.scalar_zero_point == quant.qmin


def _behind_limit(graph: Graph, name: str) -> str:
    """The result of the relu or clip that alone reads a float value, else the value."""
    readers = graph.users.get(name, ())
    node = readers[0] if len(readers) == 1 else None
    limits = node is not None and isinstance(node.op, OnnxOp) and node.op.op_type in _LIMITS[:2]
    return node.results[0] if limits and node is not None else name


def _results(graph: Graph) -> Iterable[str]:
    """What operators make: codes of up to 16 bits, and floats made of codes."""
    for node in graph.nodes:
        for name in node.results:
            if name and (has_codes(graph, name) or graph.types[name].dtype.is_float):
                yield name


def _by_products(
    graph: Graph, other: Graph, pairs: dict[str, str], taken: set[str]
) -> dict[str, str]:
    """Pair the results of convolutions and products, if both graphs have the same ones in order."""
    ours, theirs = _products(graph), _products(other)
    if [shape for _, shape in ours] != [shape for _, shape in theirs]:
        return pairs
    for (node, _), (float_node, _) in zip(ours, theirs, strict=True):
        name, found = _quantized_result(graph, node), _limited_result(other, float_node)
        if name is not None and name not in pairs and found not in taken:
            pairs[name] = found
    return pairs


def _products(graph: Graph) -> list[tuple[Node, tuple[int, ...]]]:
    """The operators with constant weights, and the sizes of these, in order of size."""
    found: list[tuple[Node, tuple[int, ...]]] = []
    for node in graph.nodes:
        title = node.op.op_type if isinstance(node.op, OnnxOp) else node.op.name
        product = title in _PRODUCTS or title.startswith(("qnn.conv", "qnn.dense"))
        weights = graph.constants.get(node.operands[1]) if len(node.operands) > 1 else None
        if product and weights is not None and weights.ndim > 1:
            found.append((node, tuple(sorted(weights.shape))))
    return found


def _quantized_result(graph: Graph, node: Node) -> str | None:
    """The codes that a product's sums become."""
    readers = graph.users.get(node.results[0], ())
    names = [reader.results[0] for reader in readers if has_codes(graph, reader.results[0])]
    return names[0] if len(names) == 1 else None


def _limited_result(graph: Graph, node: Node) -> str:
    """The result behind what a quantized product takes in: a bias and a limit."""
    name = node.results[0]
    while len(readers := graph.users.get(name, ())) == 1:
        (reader,) = readers
        others = [operand for operand in reader.operands if operand and operand != name]
        known = all(operand in graph.constants for operand in others)
        if not (isinstance(reader.op, OnnxOp) and reader.op.op_type in _LIMITS and known):
            break
        name = reader.results[0]
    return name
