"""Operators in the place of what an export wrote for them, where both compute the same codes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from intonnx.importer.float_functions import FUNCTIONS
from intonnx.importer.qdq.boundary import made_by
from intonnx.importer.qdq.recipe import MAX_STEPS, table_for
from intonnx.ir.graph import Graph
from intonnx.ir.ops.lut import FloatStep, Lut
from intonnx.ir.ops.onnx_op import OnnxOp
from intonnx.ir.ops.quantize import Requantize
from intonnx.ir.ops.reduce import Mean
from intonnx.ir.ops.storage_cast import StorageCast
from intonnx.ir.rewriter import NodeId, Rewriter
from intonnx.ir.types import DType, QuantParams, static_shape


def restore_recipes(rewriter: Rewriter, recipes: Mapping[str, Sequence[FloatStep]]) -> None:
    """Let tables say again which float operators they stand for, if these make the same table."""
    for node_id in rewriter.node_ids():
        node = rewriter.node(node_id)
        if not isinstance(node.op, Lut) or node.op.recipe:
            continue
        steps = tuple(recipes.get(node.results[0], ()))
        table = rewriter.constants.get(node.operands[1])
        if not _computable(steps) or table is None:
            continue
        params = rewriter.types[node.operands[0]].params
        try:
            made = table_for(steps, params, node.op.out)
        except (ArithmeticError, LookupError, TypeError, ValueError):
            continue  # attributes that no operator has
        if np.array_equal(made, table):
            op = node.op.model_copy(update={"recipe": steps})
            rewriter.update(node_id, replace(node, op=op))


def _computable(steps: Sequence[FloatStep]) -> bool:
    """Whether these are steps that the import itself could have found."""
    for index, step in enumerate(steps):
        function = FUNCTIONS.get(step.op_type)
        if function is None or not function.fewest <= len(step.operands) <= function.most:
            return False
        if any(isinstance(at, int) and not 0 <= at <= index for at in step.operands):
            return False
    return 0 < len(steps) <= MAX_STEPS


def restored_means(graph: Graph) -> Graph:
    """The graph where Cast -> ReduceSum -> Mul -> Q is the mean that has just this multiplier."""
    rewriter = Rewriter(graph)
    for node_id in rewriter.node_ids():
        if node_id in rewriter and isinstance(rewriter.node(node_id).op, Requantize):
            _restore_mean(rewriter, node_id)
    return rewriter.finish()


def _restore_mean(rewriter: Rewriter, node_id: NodeId) -> None:
    node = rewriter.node(node_id)
    assert isinstance(node.op, Requantize)
    cast = rewriter.producer(node.operands[0])
    if cast is None or not isinstance(cast.op, StorageCast):
        return
    total = made_by(rewriter, cast.operands[0], "ReduceSum")
    axes = None if total is None else rewriter.constants.get([*total.operands, ""][1])
    if total is None or axes is None or not axes.size:
        return
    assert isinstance(total.op, OnnxOp)
    x = _centred(rewriter, total.operands[0])
    if x is None:
        return
    keepdims = bool(dict(total.op.attributes).get("keepdims", 1))
    op = Mean(axes=tuple(axes.reshape(-1).tolist()), keepdims=keepdims, out=node.op.out)
    kind, sums = rewriter.types[x], rewriter.types[node.operands[0]].params
    sizes = static_shape(op.counted(kind.shape or ()))
    if sizes is None or not (sums.per_tensor and node.op.out.per_tensor):
        return
    if _multiplier(kind.params, node.op.out, math.prod(sizes)) != _multiplier(sums, node.op.out, 1):
        return
    rewriter.remove(node_id)
    sources = [*total.sources, *cast.sources, *node.sources]
    rewriter.emit(op, [x], node.results, sources=sources, before=node_id)


def _centred(rewriter: Rewriter, name: str) -> str | None:
    """The codes whose distances from their zero point these whole numbers are."""
    zero = np.zeros((), np.int64)
    if (subtract := made_by(rewriter, name, "Sub")) is not None:
        found = rewriter.constants.get(subtract.operands[1])
        if found is None or found.size != 1:
            return None
        zero, name = found.astype(np.int64).reshape(()), subtract.operands[0]
    made = made_by(rewriter, name, "Cast")
    kind = None if made is None else rewriter.types[made.operands[0]]
    if made is None or kind is None or kind.quant is None or not kind.quant.per_tensor:
        return None
    wide = rewriter.types[name].dtype in (DType.I32, DType.I64)
    fits = wide and kind.dtype.bits <= 16 and kind.quant.scalar_zero_point == int(zero)
    return made.operands[0] if fits else None


def _multiplier(x: QuantParams, out: QuantParams, count: int) -> np.float32:
    """What sums of this scale are multiplied by for the mean of so many."""
    with np.errstate(all="ignore"):
        return np.float32(float(x.scalar_scale) / (float(out.scalar_scale) * max(count, 1)))
