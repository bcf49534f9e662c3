"""What a model says beside its graph: kept as JSON so that an export can say it again."""

from __future__ import annotations

from typing import Any

import onnx

from .load import LoadedModel


def metadata_of(model: LoadedModel) -> dict[str, Any]:
    """Opsets, producer, documentation and metadata properties; empty entries are left out.

    Keys: `opsets` {domain: version}, `ir_version`, `producer_name`, `producer_version`, `domain`,
    `model_version`, `doc`, `graph_doc`, `properties` {key: value}, `value_docs` {value: text},
    `denotations` {value: [of the type, [of each axis]]}.
    """
    proto = model.proto
    values = [*proto.graph.input, *proto.graph.output, *proto.graph.value_info]
    found: dict[str, Any] = {
        "opsets": model.opsets,
        "ir_version": proto.ir_version,
        "producer_name": proto.producer_name,
        "producer_version": proto.producer_version,
        "domain": proto.domain,
        "model_version": proto.model_version,
        "doc": proto.doc_string,
        "graph_doc": proto.graph.doc_string,
        "properties": {entry.key: entry.value for entry in proto.metadata_props},
        "value_docs": {value.name: value.doc_string for value in values if value.doc_string},
        "denotations": {v.name: said for v in values if (said := _denotations(v))},
    }
    return {key: value for key, value in found.items() if value}


def _denotations(value: onnx.ValueInfoProto) -> list[Any]:
    """What the type and each axis of a tensor stand for; empty where the model does not say."""
    axes = [dim.denotation for dim in value.type.tensor_type.shape.dim]
    return [value.type.denotation, axes] if value.type.denotation or any(axes) else []
