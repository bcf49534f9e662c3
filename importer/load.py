"""From a path, bytes or a ModelProto to a checked ModelProto: limits, external data, functions."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import networkx as nx
import onnx
import onnx.inliner
from google.protobuf.message import DecodeError, Message

from intonnx.ir.errors import FileFailure, ImportFailure, LimitFailure, ModelFailure

MAX_FILE_BYTES = 2**31 - 1
"""The size limit of a protobuf message; larger models keep their weights in external files."""
MAX_NODES = 1_000_000
OLDEST_OPSET = 1
"""QuantizeLinear and DequantizeLinear came with this opset."""

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
        proto: the model with its local functions inlined and external data still outside.
        folder: where external data lies; "" when the model did not come from a file.
        file: the file's name for error messages, or None.
        opsets: opset version by domain; "" is ai.onnx.
    """

    proto: onnx.ModelProto
    folder: str
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
        folder = str(Path(file).resolve().parent) if file else ""
        _check_limits(proto)
        _check_external_data(proto, folder)
        proto = _with_known_domain(proto)
        opsets = _opsets(proto)
        proto = _sorted(proto)
        _check(proto)
        proto = _inlined(proto)
    except ImportFailure as error:
        raise error.located(file=file) from None
    return LoadedModel(proto, folder, file, opsets)


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
    except DecodeError:
        raise FileFailure("not an ONNX model, or one that is truncated") from None
    if not proto.HasField("graph") or not proto.opset_import:
        raise FileFailure("not an ONNX model: it has no graph or no opset")
    return proto


def _check_limits(proto: onnx.ModelProto) -> None:
    if len(proto.graph.node) > MAX_NODES:
        raise LimitFailure(f"the graph has {len(proto.graph.node)} nodes, more than {MAX_NODES}")
    if proto.functions and _inlined_nodes(proto) > MAX_NODES:
        raise LimitFailure(f"with its functions inlined the graph has more than {MAX_NODES} nodes")


def _inlined_nodes(proto: onnx.ModelProto) -> int:
    """How many nodes the graph has when every local function is inlined; 0 for recursive ones."""
    bodies = {(f.domain, f.name, f.overload): _calls(f.node) for f in proto.functions}
    called: nx.DiGraph[tuple[str, str, str]] = nx.DiGraph()
    called.add_nodes_from(bodies)
    called.add_edges_from((f, g) for f, body in bodies.items() for g in body if g in bodies)
    if not nx.is_directed_acyclic_graph(called):
        return 0
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
        for attribute in node.attribute:
            pending.extend(attribute.g.node)
            for graph in attribute.graphs:
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


def tensors_of(message: Message) -> list[onnx.TensorProto]:
    """Every tensor in a model, those in attributes and subgraphs included."""
    found: list[onnx.TensorProto] = []
    pending: list[Message] = [message]
    while pending:
        item = pending.pop()
        if isinstance(item, onnx.TensorProto):
            found.append(item)
            continue
        for field, value in item.ListFields():
            if field.message_type is not None:
                pending.extend([value] if isinstance(value, Message) else value)
    return found


def _check_external_data(proto: onnx.ModelProto, folder: str) -> None:
    for tensor in tensors_of(proto):
        if not _is_external(tensor):
            continue
        entries = {entry.key: entry.value for entry in tensor.external_data}
        location = entries.get("location", "")
        if not folder:
            raise FileFailure(
                f"the tensor '{tensor.name}' is in the file '{location}' beside the model: "
                "import the model by its path"
            )
        _check_location(tensor.name, location, entries, Path(folder))


def _check_location(name: str, location: str, entries: dict[str, str], folder: Path) -> None:
    path = (folder / location).resolve()
    if not location or not path.is_relative_to(folder):
        raise FileFailure(
            f"the external data of '{name}', '{location}', is outside the model's folder"
        )
    if not path.is_file():
        raise FileFailure(f"the external data of '{name}', '{location}', is missing")
    try:
        offset, length = int(entries.get("offset", 0)), int(entries.get("length", 0))
    except ValueError:
        raise FileFailure(f"the external data of '{name}' has a malformed offset") from None
    if offset < 0 or length < 0 or offset + length > path.stat().st_size:
        raise FileFailure(
            f"the external data of '{name}', '{location}', is shorter than the model says"
        )


def _sorted(proto: onnx.ModelProto) -> onnx.ModelProto:
    """The model with its nodes in topological order; ONNX asks for it, some producers forget."""
    made_by = {name: i for i, node in enumerate(proto.graph.node) for name in node.output if name}
    edges = [
        (made_by[name], i)
        for i, node in enumerate(proto.graph.node)
        for name in node.input
        if name in made_by
    ]
    if all(source < target for source, target in edges):
        return proto
    graph: nx.DiGraph[int] = nx.DiGraph(edges)
    graph.add_nodes_from(range(len(proto.graph.node)))
    try:
        order = list(nx.lexicographical_topological_sort(graph))
    except nx.NetworkXUnfeasible:
        first = proto.graph.node[nx.find_cycle(graph)[0][0]]
        name = first.name or first.output[0]
        raise ModelFailure("the graph has a cycle", node=f"'{name}' ({first.op_type})") from None
    sorted_proto = onnx.ModelProto()
    sorted_proto.CopyFrom(proto)
    del sorted_proto.graph.node[:]
    sorted_proto.graph.node.extend(proto.graph.node[i] for i in order)
    return sorted_proto


def _checkable(proto: onnx.ModelProto) -> onnx.ModelProto:
    """The model as the checker wants it.

    It refuses values without a type or shape, which onnxruntime does not: such value_info is
    left out, and such outputs get any type and shape: the checker asks no more. It looks for
    external data in the current folder: such initializers become inputs.
    """
    graph = proto.graph
    typed = all(is_typed(value) for value in graph.value_info)
    shaped = all(value.type.tensor_type.HasField("shape") for value in graph.output)
    if typed and shaped and not any(map(_is_external, graph.initializer)):
        return proto
    copy = onnx.ModelProto()
    copy.CopyFrom(proto)
    del copy.graph.value_info[:], copy.graph.initializer[:]
    copy.graph.value_info.extend(value for value in graph.value_info if is_typed(value))
    copy.graph.initializer.extend(t for t in graph.initializer if not _is_external(t))
    known = {value.name for value in graph.input}
    copy.graph.input.extend(
        onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
        for tensor in graph.initializer
        if _is_external(tensor) and tensor.name not in known
    )
    for value in copy.graph.output:
        if not is_typed(value):
            value.type.tensor_type.elem_type = onnx.TensorProto.FLOAT
        if value.type.WhichOneof("value") == "tensor_type":
            value.type.tensor_type.shape.SetInParent()
    return copy


def _is_external(tensor: onnx.TensorProto) -> bool:
    return tensor.data_location == onnx.TensorProto.EXTERNAL


def is_typed(value: onnx.ValueInfoProto) -> bool:
    """Whether a value says its type."""
    return value.HasField("type") and value.type.WhichOneof("value") is not None


def _check(proto: onnx.ModelProto) -> None:
    try:
        onnx.checker.check_model(_checkable(proto))
    except onnx.checker.ValidationError as error:
        raise _explained(str(error), _opsets(proto).get("")) from None


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
