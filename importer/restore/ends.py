"""Parameters of codes that a caller gives or gets, where no operator of the model says any."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from intonnx.importer.registry import codes_rule
from intonnx.ir.changes import Stored
from intonnx.ir.graph import Graph, Node
from intonnx.ir.ops.onnx_op import OnnxOp
from intonnx.ir.ops.storage_cast import StorageCast
from intonnx.ir.rewriter import Rewriter
from intonnx.ir.types import QuantParams, quantized


def with_known_inputs(graph: Graph, inputs: Mapping[str, Stored]) -> Graph:
    """The translated graph where operators that move codes read them with their parameters.

    They move codes whatever these mean, so no result changes.
    """
    rewriter = Rewriter(graph)
    for name, stored in inputs.items():
        if name not in graph.inputs or rewriter.types[name].dtype is not stored.storage:
            continue
        movers = [i for i in rewriter.user_ids(name) if _moves(rewriter.node(i))]
        if rewriter.types[name].quant is not None or not movers or len(stored.scale) != 1:
            continue
        params = _params(stored)
        codes = rewriter.fresh(f"{name}.codes")
        rewriter.emit(StorageCast(out=params), [name], [codes], before=movers[0])
        for node_id in movers:
            node = rewriter.node(node_id)
            operands = (codes, *node.operands[1:])
            rewriter.update(node_id, replace(node, operands=operands))
    return rewriter.finish()


def with_known_outputs(graph: Graph, outputs: Mapping[str, Stored]) -> Graph:
    """The translated graph where plain codes that only the caller reads get parameters."""
    rewriter = Rewriter(graph)
    for name, stored in outputs.items():
        if not rewriter.is_output(name) or rewriter.user_ids(name) or len(stored.scale) != 1:
            continue
        kind = rewriter.types[name]
        if kind.quant is not None or kind.dtype is not stored.storage:
            continue
        if name in rewriter.constants:
            rewriter.types[name] = quantized(_params(stored), kind.shape)
        elif rewriter.producer(name) is not None:
            plain = rewriter.fresh(f"{name}.plain")
            rewriter.rename(name, plain)
            rewriter.emit(StorageCast(out=_params(stored)), [plain], [name])
    return rewriter.finish()


def _params(stored: Stored) -> QuantParams:
    return QuantParams(
        storage=stored.storage,
        scale=np.asarray(stored.scale[0], np.float32),
        zero_point=np.asarray(stored.zero[0]),
    )


def _moves(node: Node) -> bool:
    if not isinstance(node.op, OnnxOp) or node.op.domain:
        return False
    return codes_rule(node.op.op_type) is not None
