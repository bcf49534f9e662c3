"""Undo what an export changed for its target, as the model's metadata say it.

Metadata are not to be trusted, so nothing here can change a value: codes and zero points shift
together, scales go back by a few units in the last place at most, and what is put in the place of
something else is computed first and compared with it.
"""

from __future__ import annotations

from pydantic import ValidationError

from intonnx.importer.load import LoadedModel
from intonnx.importer.qdq.collect import collect
from intonnx.importer.translate import translate
from intonnx.ir.changes import KEY, Changes
from intonnx.ir.errors import IntonnxError
from intonnx.ir.graph import Graph
from intonnx.ir.ops.quantize import Requantize
from intonnx.ir.rewriter import Rewriter
from intonnx.ir.verify import verify

from .ends import with_known_inputs, with_known_outputs
from .operators import restore_recipes, restored_means
from .scales import with_true_scales
from .shift import Shift
from .weights import restore_weights

_READINGS = 8
"""How often a model is read whose metadata say more than its operators let be undone."""


def changes_of(model: LoadedModel) -> Changes | None:
    """What the export that wrote this model changed; None where it says nothing readable."""
    for entry in model.proto.metadata_props:
        if entry.key == KEY:
            try:
                return Changes.model_validate_json(entry.value)
            except ValidationError:
                return None
    return None


def undone(model: LoadedModel, changes: Changes) -> Graph | None:
    """The graph before an export changed it; None where the metadata that say so do not fit."""
    try:
        for _ in range(_READINGS):
            literal = translate(with_true_scales(model, changes), collect)
            literal = with_known_outputs(literal, changes.outputs)
            read = collect(with_known_inputs(literal, changes.inputs))
            found = _restored(read, changes)
            if isinstance(found, Graph):
                verify(found)
                return found
            changes = found
    except (IntonnxError, ValueError, ArithmeticError, LookupError):
        # Anybody may have written the metadata: the model itself is what counts.
        pass
    return None


def _restored(graph: Graph, changes: Changes) -> Graph | Changes:
    """The graph with codes, weights and operators as they were.

    Where an operator knows no other codes, the codes that have to stay as they are with it: then
    the answer is the changes without them, and the model has to be read again with these, as true
    scales belong to codes in their true types. Raises IntonnxError or ValueError where metadata
    that are wrong in themselves make a graph that is.
    """
    shift = Shift(restored_means(graph), changes.storage)
    if fixed := shift.fixed():
        return _without(changes, fixed, graph)
    rewriter = Rewriter(shift.graph())
    _drop_moves(rewriter)
    restore_weights(rewriter, {k: v for k, v in changes.storage.items() if k not in shift.names})
    restore_recipes(rewriter, changes.recipes)
    return rewriter.finish()


def _without(changes: Changes, fixed: set[str], graph: Graph) -> Changes:
    """The changes but for these values, and the true scales of what reads or makes them."""
    storage = {name: old for name, old in changes.storage.items() if name not in fixed}
    touched = {
        name for node in graph.nodes for name in node.results
        if not fixed.isdisjoint((*node.operands, *node.results))
    }  # fmt: skip
    scales = {name: pair for name, pair in changes.scales.items() if name not in touched}
    return changes.model_copy(update={"storage": storage, "scales": scales})


def _drop_moves(rewriter: Rewriter) -> None:
    """Take out the requantizes that move nothing any more."""
    for node_id in rewriter.node_ids():
        node = rewriter.node(node_id)
        if not isinstance(node.op, Requantize):
            continue
        if rewriter.types[node.operands[0]].quant == node.op.out:
            rewriter.bypass(node_id)
