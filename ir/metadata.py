"""What a graph says beside its nodes: which entries of its metadata must have which form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeGuard

_TEXTS = ("producer_name", "producer_version", "domain", "doc", "graph_doc")
_NUMBERS = ("ir_version", "model_version")
_TABLES = ("properties", "value_docs")
_INT32, _INT64 = 1 << 31, 1 << 63


def metadata_fault(metadata: Mapping[str, object]) -> str | None:
    """What is wrong with an entry that an export or a run reads; other entries may be anything."""
    for key in _TEXTS:
        if not isinstance(metadata.get(key, ""), str):
            return f"'{key}' is no text"
    for key in _NUMBERS:
        number = metadata.get(key, 0)
        if not _is_integer(number) or not -_INT64 <= number < _INT64:
            return f"'{key}' is no 64-bit integer"
    for key in _TABLES:
        if not _is_table(metadata.get(key, {})):
            return f"'{key}' is no object of texts"
    opsets = metadata.get("opsets", {})
    if not isinstance(opsets, dict) or not all(
        _is_integer(version) and 0 < version < _INT32 for version in opsets.values()
    ):
        return "'opsets' is no object of versions"
    return None


def producer_of(metadata: Mapping[str, object]) -> str:
    """The program that wrote the model and its version, or ""."""
    found = (str(metadata.get(f"producer_{key}", "")) for key in ("name", "version"))
    return " ".join(filter(None, found))


def _is_integer(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_table(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(item, str) for item in value.values())
