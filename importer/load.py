"""From a path, bytes or a ModelProto to a checked ModelProto: limits, external data, functions."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import networkx as nx
import onnx
import onnx.inliner
from google.protobuf.message import DecodeError, Message

from intonnx.ir.errors import FileFailure, ImportFailure, LimitFailure, ModelFailure

from .attributes import captured_names, subgraphs_of
from .external import ExternalData, is_external

MAX_FILE_BYTES = 2**31 - 1
"""The size limit of a protobuf message; larger models keep their weights in external files."""
MAX_NODES = 1_000_000
MAX_DEPTH = 32
"""How deep subgraphs may lie in each other; protobuf itself reads about as many from a file."""
MAX_CALLS = 256
"""How deep local functions may call each other."""
OLDEST_OPSET = 1
"""Operators from before the quantizers, opset 10, are kept as they are."""

_TENSOR_TEXTS = [
    onnx.TensorProto.DESCRIPTOR.fields_by_name[name]
    for name in ("name", "doc_string", "external_data")
]

_MICROSOFT = "com.microsoft"

ModelSource = str | os.PathLike[str] | bytes | onnx.ModelProto


@dataclass(frozen=True)
class LoadedModel:
    """A model that passed the onnx checker.

    Attributes:
        proto: the model, local functions inlined; external data of its initializers is outside.
        external: the files beside the model that hold some of its weights.
        file: the file's name for error messages, or None.
        opsets: opset version by domain; "" is ai.onnx.
    """

    proto: onnx.ModelProto
    external: ExternalData
    file: str | None
    opsets: dict[str, int]


def load_model(source: ModelSource) -> LoadedModel:
    """Read and check a model.

    Raises FileFailure when the file cannot be read or is no ONNX model, ModelFailure when the
    graph is invalid, LimitFailure when it is too large.
    """
    file = os.fspath(source) if isinstance(source, str | os.PathLike) else None
    try:
        proto = _read(source)
        _check_texts(proto)
        external = ExternalData(str(Path(file).resolve().parent) if file else "")
        _check_limits(proto)
        external.check(proto)
        proto = external.embedded(proto)
        proto = _with_known_domain(proto)
        opsets = _opsets(proto)
        proto = _sorted(proto)
        _check(proto)
        proto = _inlined(proto)
    except ImportFailure as error:
        raise error.located(file=file) from None
    return LoadedModel(proto, external, file, opsets)


def _read(source: ModelSource) -> onnx.ModelProto:
    if isinstance(source, onnx.ModelProto):
        return source
    if isinstance(source, bytes):
        return _decode(source)
    path = Path(source)
    try:
        size = path.stat().st_size
        if size > MAX_FILE_BYTES:
            raise LimitFailure(f"the file has {size} bytes, more than a protobuf message can have")
        return _decode(path.read_bytes())
    except OSError as error:
        raise FileFailure(f"cannot read the file: {error.strerror or error}") from None


def _decode(data: bytes) -> onnx.ModelProto:
    if not data:
        raise FileFailure("the file is empty")
    proto = onnx.ModelProto()
    try:
        proto.ParseFromString(data)
    except DecodeError as error:
        if "depth" in str(error).lower():
            raise LimitFailure(f"graphs lie more than {MAX_DEPTH} deep in graphs") from None
        raise FileFailure("not an ONNX model, or one that is truncated") from None
    if not proto.HasField("graph") or not proto.opset_import:
        raise FileFailure("not an ONNX model: it has no graph or no opset")
    return proto


def _check_limits(proto: onnx.ModelProto) -> None:
    count, depth = _extent(proto.graph.node)
    if depth > MAX_DEPTH:
        raise LimitFailure(f"graphs lie more than {MAX_DEPTH} deep in graphs")
    if count > MAX_NODES:
        raise LimitFailure(f"the graph has {count} nodes, more than {MAX_NODES}")
    if any(_extent(function.node)[1] > MAX_DEPTH for function in proto.functions):
        raise LimitFailure(f"graphs lie more than {MAX_DEPTH} deep in graphs of a local function")
    if proto.functions and _inlined_nodes(proto) > MAX_NODES:
        raise LimitFailure(f"with its functions inlined the graph has more than {MAX_NODES} nodes")


def _extent(nodes: Iterable[onnx.NodeProto]) -> tuple[int, int]:
    """How many nodes these are with those of their subgraphs, and how deep subgraphs lie."""
    count = depth = 0
    level = list(nodes)
    while level:
        count += len(level)
        level = [inner for node in level for graph in subgraphs_of(node) for inner in graph.node]
        depth += 1
    return count, depth - 1


def _inlined_nodes(proto: onnx.ModelProto) -> int:
    """How many nodes the graph has when every local function is inlined.

    Raises ModelFailure for functions that call themselves, LimitFailure for calls too deep: the
    onnx package follows both until its stack is full.
    """
    bodies = {(f.domain, f.name, f.overload): _calls(f.node) for f in proto.functions}
    called: nx.DiGraph[tuple[str, str, str]] = nx.DiGraph()
    called.add_nodes_from(bodies)
    called.add_edges_from((f, g) for f, body in bodies.items() for g in body if g in bodies)
    if not nx.is_directed_acyclic_graph(called):
        (domain, name, _), _ = nx.find_cycle(called)[0]
        raise ModelFailure(f"the local function '{domain}.{name}' calls itself")
    if nx.dag_longest_path_length(called) > MAX_CALLS:
        raise LimitFailure(f"local functions call each other more than {MAX_CALLS} deep")
    sizes: dict[tuple[str, str, str], int] = {}
    for function in reversed(list(nx.topological_sort(called))):
        body = bodies[function]
        sizes[function] = sum(count * sizes.get(callee, 1) for callee, count in body.items())
    return sum(count * sizes.get(key, 1) for key, count in _calls(proto.graph.node).items())


def _calls(nodes: Iterable[onnx.NodeProto]) -> Counter[tuple[str, str, str]]:
    """What these nodes and those of their subgraphs call, and how often."""
    found: Counter[tuple[str, str, str]] = Counter()
    pending = list(nodes)
    while pending:
        node = pending.pop()
        found[node.domain, node.op_type, node.overload] += 1
        for graph in subgraphs_of(node):
            pending.extend(graph.node)
    return found


def _opsets(proto: onnx.ModelProto) -> dict[str, int]:
    opsets: dict[str, int] = {}
    for entry in proto.opset_import:
        domain = "" if entry.domain == "ai.onnx" else entry.domain
        opsets[domain] = entry.version
    version, newest = opsets.get(""), onnx.defs.onnx_opset_version()
    if version is not None and not OLDEST_OPSET <= version <= newest:
        raise ModelFailure(
            f"opset {version} of ai.onnx; opsets {OLDEST_OPSET} to {newest} can be imported"
        )
    return opsets


def _with_known_domain(proto: onnx.ModelProto) -> onnx.ModelProto:
    """The model with an opset of com.microsoft where it has its operators and imports none.

    onnxruntime brings its own, so that some producers forget it.
    """
    imported = {entry.domain for entry in proto.opset_import}
    if _MICROSOFT in imported or not any(
        domain == _MICROSOFT for domain, *_ in _calls(proto.graph.node)
    ):
        return proto
    copy = onnx.ModelProto()
    copy.CopyFrom(proto)
    copy.opset_import.append(onnx.helper.make_opsetid(_MICROSOFT, 1))
    return copy


def _check_texts(proto: onnx.ModelProto) -> None:
    """Protobuf gives a string that is not UTF-8 as bytes, which nothing after this expects."""
    pending: list[Message] = [proto]
    while pending:
        item = pending.pop()
        # Weights are not copied for this.
        fields = (
            [(field, getattr(item, field.name)) for field in _TENSOR_TEXTS]
            if isinstance(item, onnx.TensorProto)
            else item.ListFields()
        )
        for field, value in fields:
            if field.message_type is not None:
                pending.extend([value] if isinstance(value, Message) else value)
            elif field.type == field.TYPE_STRING:
                texts = [value] if isinstance(value, str | bytes) else value
                if not all(isinstance(text, str) for text in texts):
                    what = f"{item.DESCRIPTOR.name}.{field.name}"
                    raise FileFailure(f"not an ONNX model: a text in it, a {what}, is not UTF-8")


def _sorted(proto: onnx.ModelProto) -> onnx.ModelProto:
    """The model with its nodes in topological order; ONNX asks for it, some producers forget."""
    if all(order is None for _, order in _orders(proto.graph)):
        return proto
    copy = onnx.ModelProto()
    copy.CopyFrom(proto)
    for graph, order in _orders(copy.graph):
        if order is not None:
            nodes = [graph.node[i] for i in order]
            del graph.node[:]
            graph.node.extend(nodes)
    return copy


def _orders(graph: onnx.GraphProto) -> Iterator[tuple[onnx.GraphProto, list[int] | None]]:
    """Subgraphs and at last the graph, each with a topological order of its nodes if it needs one.

    Raises ModelFailure for a cycle.
    """
    for node in graph.node:
        for inner in subgraphs_of(node):
            yield from _orders(inner)
    yield graph, _order(graph)


def _order(graph: onnx.GraphProto) -> list[int] | None:
    made_by = {name: i for i, node in enumerate(graph.node) for name in node.output if name}
    edges = [
        (made_by[name], i)
        for i, node in enumerate(graph.node)
        for name in (*node.input, *captured_names(node))
        if name in made_by
    ]
    if all(source < target for source, target in edges):
        return None
    ordered: nx.DiGraph[int] = nx.DiGraph(edges)
    ordered.add_nodes_from(range(len(graph.node)))
    try:
        return list(nx.lexicographical_topological_sort(ordered))
    except nx.NetworkXUnfeasible:
        first = graph.node[nx.find_cycle(ordered)[0][0]]
        name = first.name or first.output[0]
        raise ModelFailure("the graph has a cycle", node=f"'{name}' ({first.op_type})") from None


def _checkable(proto: onnx.ModelProto) -> onnx.ModelProto:
    """The model as the checker wants it.

    It refuses values without a type or shape, which onnxruntime does not: such value_info is
    left out, and such outputs get any type and shape: the checker asks no more. It looks for
    external data in the current folder: such initializers become inputs.
    """
    graph = proto.graph
    typed = all(is_typed(value) for value in graph.value_info)
    shaped = all(value.type.tensor_type.HasField("shape") for value in graph.output)
    if typed and shaped and not any(map(is_external, graph.initializer)):
        return proto
    copy = onnx.ModelProto()
    copy.CopyFrom(proto)
    del copy.graph.value_info[:], copy.graph.initializer[:]
    copy.graph.value_info.extend(value for value in graph.value_info if is_typed(value))
    copy.graph.initializer.extend(t for t in graph.initializer if not is_external(t))
    known = {value.name for value in graph.input}
    copy.graph.input.extend(
        onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
        for tensor in graph.initializer
        if is_external(tensor) and tensor.name not in known
    )
    for value in copy.graph.output:
        if not is_typed(value):
            value.type.tensor_type.elem_type = onnx.TensorProto.FLOAT
        if value.type.WhichOneof("value") == "tensor_type":
            value.type.tensor_type.shape.SetInParent()
    return copy


def is_typed(value: onnx.ValueInfoProto) -> bool:
    """Whether a value says its type."""
    return value.HasField("type") and value.type.WhichOneof("value") is not None


def _check(proto: onnx.ModelProto) -> None:
    try:
        onnx.checker.check_model(_checkable(proto))
    except onnx.checker.ValidationError as error:
        raise _explained(str(error), _opsets(proto).get("")) from None
    except ValueError as error:  # what protobuf cannot write
        raise LimitFailure(f"the model cannot be serialized: {error}") from None


def _explained(message: str, opset: int | None) -> ModelFailure:
    """The checker's message as one line, with the node it speaks of."""
    node = re.search(r"Bad node spec for node\. Name: (.*?) OpType: (\S+)", message)
    cause = message.split("==> Context:")[0].strip()
    if node and opset is not None:
        cause += f" of opset {opset}"
    if node and "axis" in cause and node[2] in ("QuantizeLinear", "DequantizeLinear"):
        cause += ": per-axis parameters came with opset 13"
    return ModelFailure(cause, node=f"'{node[1]}' ({node[2]})" if node else None)


def _inlined(proto: onnx.ModelProto) -> onnx.ModelProto:
    if not proto.functions:
        return proto
    try:
        inlined: onnx.ModelProto = onnx.inliner.inline_local_functions(proto)
    except Exception as error:  # the inliner raises what C++ threw
        raise ModelFailure(f"the local functions cannot be inlined: {error}") from None
    return inlined
