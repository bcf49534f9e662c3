"""Attributes of an ONNX node as the IR keeps them, and the names its subgraphs capture."""

from __future__ import annotations

import onnx
from onnx import AttributeProto

from intonnx.ir.ops.onnx_op import Attribute, Opaque

_PLAIN = {
    AttributeProto.INT,
    AttributeProto.FLOAT,
    AttributeProto.STRING,
    AttributeProto.INTS,
    AttributeProto.FLOATS,
    AttributeProto.STRINGS,
}


def attributes_of(node: onnx.NodeProto) -> dict[str, Attribute]:
    """Name to value; what the IR does not look into stays serialized."""
    return {attribute.name: _value(attribute) for attribute in node.attribute}


def _value(attribute: AttributeProto) -> Attribute:
    if attribute.type in _PLAIN:
        value = onnx.helper.get_attribute_value(attribute)
        if isinstance(value, bytes):
            return _text(value)
        if isinstance(value, int | float):
            return value
        items = tuple(_text(item) if isinstance(item, bytes) else item for item in value)
        if items:
            return items
    # An empty list does not tell the type of its items.
    what = AttributeProto.AttributeType.Name(attribute.type).lower()
    return Opaque(what=what, data=attribute.SerializeToString(deterministic=True))


def _text(value: bytes) -> str | bytes:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value


def captured_names(node: onnx.NodeProto) -> list[str]:
    """Names that the subgraphs of a node read without making them, in order of first use."""
    captured: dict[str, None] = {}
    for graph in subgraphs_of(node):
        captured.update(dict.fromkeys(free_names(graph)))
    return list(captured)


def subgraphs_of(node: onnx.NodeProto) -> list[onnx.GraphProto]:
    """The graphs among the attributes of a node."""
    return [
        graph
        for attribute in node.attribute
        for graph in (*attribute.graphs, *([attribute.g] if attribute.HasField("g") else ()))
    ]


def free_names(graph: onnx.GraphProto) -> list[str]:
    """Names that a graph reads without making them, in order of first use."""
    made = {value.name for value in graph.input} | {t.name for t in graph.initializer}
    made |= {tensor.values.name for tensor in graph.sparse_initializer}
    free: dict[str, None] = {}
    for node in graph.node:
        for name in [*node.input, *captured_names(node)]:
            if name and name not in made:
                free[name] = None
        made.update(node.output)
    for value in graph.output:
        if value.name not in made:
            free[value.name] = None
    return list(free)
