"""What a model says of its values beside their types: texts and denotations."""

from __future__ import annotations

import re
from typing import Any

import onnx
from onnx import helper

from intonnx.ir.graph import Graph
from intonnx.ir.types import UNKNOWN_DIM
from intonnx.protos import proto_of

_INVENTED = re.compile(r"unk__\d+")
"""What the onnx package's inference calls sizes that have no name."""


def described_value(graph: Graph, name: str) -> onnx.ValueInfoProto:
    """A value of the graph with its type, its text and the denotations that the model gave it."""
    kind = graph.types[name]
    if name in graph.outputs and kind.shape is not None:
        given = {size for value in graph.inputs for size in graph.types[value].shape or ()}
        kind = kind.with_shape(
            [
                UNKNOWN_DIM if size not in given and _INVENTED.fullmatch(str(size)) else size
                for size in kind.shape
            ]
        )
    doc = _said(graph, "value_docs", name)
    value = helper.make_value_info(name, proto_of(kind), doc_string=str(doc or ""))
    match _said(graph, "denotations", name):
        case [str() as own, list() as axes] if value.type.HasField("tensor_type"):
            if own:
                value.type.denotation = own
            for dim, text in zip(value.type.tensor_type.shape.dim, axes, strict=False):
                if text:
                    dim.denotation = str(text)
        case _:
            pass
    return value


def _said(graph: Graph, key: str, name: str) -> Any:
    """What the metadata, which may be anything that JSON can hold, say of a value."""
    texts = graph.metadata.get(key)
    return texts.get(name) if isinstance(texts, dict) else None
