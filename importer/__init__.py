"""ONNX to IR: `import_model` reads a model, `translate` and `collect` are its two steps."""

from __future__ import annotations

from intonnx.ir.errors import IntonnxError, ModelFailure
from intonnx.ir.graph import Graph
from intonnx.ir.rewriter import Rewriter
from intonnx.ir.verify import verify

from .load import ModelSource, load_model
from .qdq.collect import collect
from .restore.undo import changes_of, undone
from .translate import translate


def import_model(source: ModelSource, *, literal: bool = False) -> Graph:
    """Import an ONNX model into the typed quantized IR.

    Args:
        source: a path, the bytes of a model, or a ModelProto.
        literal: stop after translation: quantizers stay where the model has them.

    Raises:
        ImportFailure: the file or the graph is not valid; one line names file, node and cause.
    """
    model = load_model(source)
    changes = None if literal else changes_of(model)
    try:
        graph = None if changes is None else undone(model, changes)
        if graph is None:
            finish = _literal if literal else collect
            graph = finish(translate(model, finish))
            verify(graph)
    except IntonnxError as error:
        error = error if isinstance(error, ModelFailure) else _as_model_failure(error)
        raise error.located(file=model.file) from None
    return graph


def _literal(graph: Graph) -> Graph:
    return Rewriter(graph).finish()


def _as_model_failure(error: IntonnxError) -> IntonnxError:
    from intonnx.ir.errors import ImportFailure

    if isinstance(error, ImportFailure):
        return error
    return ModelFailure(error.cause, node=error.node, file=error.file)
