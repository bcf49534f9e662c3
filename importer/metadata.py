"""What a model says beside its graph: kept as JSON so that an export can say it again."""

from __future__ import annotations

from typing import Any

from .load import LoadedModel


def metadata_of(model: LoadedModel) -> dict[str, Any]:
    """Opsets, producer, documentation and metadata properties; empty entries are left out.

    Keys: `opsets` {domain: version}, `ir_version`, `producer_name`, `producer_version`, `domain`,
    `model_version`, `doc`, `graph_doc`, `properties` {key: value}, `value_docs` {value: text}.
    """
    proto = model.proto
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
        "value_docs": {
            value.name: value.doc_string
            for value in [*proto.graph.input, *proto.graph.output, *proto.graph.value_info]
            if value.doc_string
        },
    }
    return {key: value for key, value in found.items() if value}
