"""Bodies of If, Loop and Scan: each becomes a graph of its own, integer where it can be.

docs/adr/0007 says how a body is held and what it captures.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

import onnx

from intonnx.ir.graph import Graph, Source
from intonnx.ir.types import Array, TensorType, plain
from intonnx.protos import proto_of

from .attributes import free_names
from .load import LoadedModel, is_typed

BODIES = {
    ("If", "then_branch"): 1,
    ("If", "else_branch"): 1,
    ("Loop", "body"): 1,
    ("Scan", "body"): 9,  # before, a batch axis ran through it
}
"""Attributes that are bodies, and the opset of ai.onnx since when."""

Given = Mapping[str, tuple[Array, TensorType]]
Build = Callable[[LoadedModel, Given], Graph]


def has_bodies(node: onnx.NodeProto, version: int) -> bool:
    """Whether the subgraphs of a node are imported; those of other operators stay as they are."""
    found = [attribute.name for attribute in node.attribute if attribute.HasField("g")]
    return bool(found) and all(
        node.domain in ("", "ai.onnx") and version >= BODIES.get((node.op_type, name), version + 1)
        for name in found
    )


def bodies_of(
    node: onnx.NodeProto,
    captures: Sequence[str],
    types: Mapping[str, TensorType],
    constants: Mapping[str, Array],
    model: LoadedModel,
    dequantizers: Sequence[onnx.NodeProto],
    build: Build,
) -> dict[str, Graph]:
    """The bodies of a node by attribute.

    Inputs of a body are its own, then one for each of `captures`, the values that bodies of the
    node read from outside; constants from outside are the body's own. Where nodes of the body read
    what one of `dequantizers` makes outside, the body captures its codes and dequantizes them.
    `build` makes a graph of a model that is a body and of constants that it knows beside.
    """
    found: dict[str, Graph] = {}
    for attribute in node.attribute:
        if not attribute.HasField("g"):
            continue
        proto = onnx.ModelProto(ir_version=model.proto.ir_version)
        proto.opset_import.extend(model.proto.opset_import)
        proto.graph.CopyFrom(attribute.g)
        _put_first(proto.graph, dequantizers)
        _type_inputs(node, attribute.g, proto.graph, types)
        proto.graph.input.extend(
            onnx.ValueInfoProto(name=name, type=proto_of(types[name])) for name in captures
        )
        known = {
            name: (constants[name], plain(types[name].dtype, constants[name].shape))
            for name in free_names(proto.graph)
            if name in constants
        }
        body = build(replace(model, proto=proto), known)
        found[attribute.name] = _without(body, {node.output[0] for node in dequantizers})
    return found


def _put_first(graph: onnx.GraphProto, nodes: Sequence[onnx.NodeProto]) -> None:
    """Add those nodes that the graph reads, in front of its own and without their names."""
    read = set(free_names(graph))
    own = [*graph.node]
    del graph.node[:]
    for node in nodes:
        if node.output[0] in read:
            graph.node.add().CopyFrom(node)
            graph.node[-1].ClearField("name")
    graph.node.extend(own)


def _without(body: Graph, names: Collection[str]) -> Graph:
    """The body without the names of nodes that are counted outside."""

    def kept(sources: Sequence[Source]) -> tuple[Source, ...]:
        return tuple(s for s in sources if s.name not in names or "Dequantize" not in s.op)

    if not names:
        return body
    nodes = tuple(replace(node, sources=kept(node.sources)) for node in body.nodes)
    return replace(body, nodes=nodes, folded=kept(body.folded))


def _type_inputs(
    node: onnx.NodeProto,
    body: onnx.GraphProto,
    graph: onnx.GraphProto,
    types: Mapping[str, TensorType],
) -> None:
    """Give inputs without a type that of the node's operand: a body need not declare them."""
    if node.op_type != "Loop":
        return
    for value, operand in zip(graph.input[2:], node.input[2:], strict=False):
        if not is_typed(value) and operand in types:
            # The shape may change from one turn to the next.
            kind = types[operand].with_shape(None)
            value.type.CopyFrom(proto_of(kind))
