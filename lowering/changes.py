"""What an export changed for its target, written into the model: an import can undo it."""

from __future__ import annotations

import numpy as np

from intonnx.ir.changes import KEY, Changes, Stored
from intonnx.ir.graph import Graph
from intonnx.ir.ops.quantize import Requantize
from intonnx.ir.ops.storage_cast import StorageCast
from intonnx.ir.storage import is_signed, moved_codes, moved_params
from intonnx.version import VERSION

from .qlinear.emitter import CONTRIB, Emitter

_SAYING = frozenset({"DequantizeLinear", "QLinearConv", "QLinearMatMul"})
"""Operators of ai.onnx that say the parameters of the codes that they read."""
VERSION_KEY = "intonnx.version"
NUMERICS_KEY = "intonnx.numerics"


def properties_of(before: Graph, out: Emitter) -> dict[str, str]:
    """The metadata properties of an export: those of the model, and what made this one of it.

    `intonnx.version` is the version that wrote it, `intonnx.numerics` the arithmetic to which its
    operators are equal, `intonnx.changes` what is not stored as the graph `before` has it.
    """
    given = before.metadata.get("properties", {})
    assert isinstance(given, dict)
    own = {VERSION_KEY: VERSION, NUMERICS_KEY: "qlinear" if out.qlinear else "qdq"}
    if (changes := _changes(before, out)) != Changes():
        own[KEY] = changes.model_dump_json(exclude_defaults=True)
    kept = {str(key): str(value) for key, value in given.items() if key not in (KEY, *own)}
    return {**kept, **own}


def _changes(before: Graph, out: Emitter) -> Changes:
    storage = {**_moved_values(before, out.graph), **out.stored}
    return Changes(
        storage=storage,
        scales=out.true_scales,
        moves=out.moves,
        multipliers=out.multipliers,
        recipes=out.recipes,
        inputs=_inputs(before, out),
        outputs=_outputs(before, out),
    )


def _inputs(before: Graph, out: Emitter) -> dict[str, Stored]:
    """The inputs that give codes of which no operator of the export says the parameters."""
    readers: dict[str, set[str]] = {name: set() for name in before.inputs}
    for node in out.nodes:
        for name in node.input:
            if name in readers:
                readers[name].add(node.op_type)
    found: dict[str, Stored] = {}
    for name, kinds in readers.items():
        casts = [node.op for node in before.users.get(name, ())]
        known = {op.out for op in casts if isinstance(op, StorageCast)}
        if len(known) != 1 or None in known or kinds <= _SAYING:
            continue
        (params,) = known
        if params is not None and params.per_tensor:
            found[name] = Stored.with_scales(name, params)
    return found


def _outputs(before: Graph, out: Emitter) -> dict[str, Stored]:
    """The outputs that are codes of which what makes them does not say the parameters."""
    said = {
        name
        for node in out.nodes
        if node.op_type in (*_SAYING, "QuantizeLinear") or node.domain == CONTRIB
        for name in node.output
    }
    kinds = {name: before.types[name].quant for name in before.outputs if name not in said}
    return {
        name: Stored.with_scales(name, params) for name, params in kinds.items()
        if params is not None and params.per_tensor
    }  # fmt: skip


def _moved_values(before: Graph, after: Graph) -> dict[str, Stored]:
    """The u8 values of a shaped graph that were s8, or stand for s8 ones."""
    found: dict[str, Stored] = {}

    def note(name: str, source: str) -> None:
        zeros = np.ravel(before.types[source].params.zero_point)
        storage = before.types[source].dtype
        found[name] = Stored(name=source, storage=storage, zero=tuple(zeros.tolist()))

    for name, kind in after.types.items():
        source = name if name in before.types else name.rpartition(".u8")[0]
        old = before.types.get(source)
        if old is None or not is_signed(old) or is_signed(kind) or kind.quant is None:
            continue
        if moved_params(old.params) == kind.quant and _same_content(before, source, after, name):
            note(name, source)
    for node in after.nodes:
        if isinstance(node.op, Requantize) and (source := node.operands[0]) in before.types:
            old, kind = before.types[source], after.types[node.results[0]]
            if is_signed(old) and moved_params(old.params) == kind.quant:
                note(node.results[0], source)
    return found


def _same_content(before: Graph, source: str, after: Graph, name: str) -> bool:
    old, new = before.constants.get(source), after.constants.get(name)
    if old is None or new is None:
        return old is new
    return np.array_equal(moved_codes(old), new)
