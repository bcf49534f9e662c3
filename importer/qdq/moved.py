"""Operators that move plain codes, when it becomes known what the codes mean."""

from __future__ import annotations

from intonnx.ir.errors import TypeFailure
from intonnx.ir.graph import Node
from intonnx.ir.op import Op
from intonnx.ir.ops.storage_cast import StorageCast
from intonnx.ir.rewriter import NodeId, Rewriter
from intonnx.ir.storage import MOVABLE
from intonnx.ir.types import QuantParams, quantized

from .typed_sums import readers_agree

_FARTHEST = 64
"""How many operators in a row are looked at: the walk back is recursive."""
_Movers = list[tuple[NodeId, list[str]]]


def moved_as(rewriter: Rewriter, name: str, params: QuantParams) -> bool:
    """Give plain codes, which all readers give these parameters, them where they come from.

    They are made by operators that move or compare codes, from constants and from codes that have
    the same parameters, which an operator on plain integers took away. Returns whether it was done.
    """
    if params.storage.bits > 16 or rewriter.is_output(name):
        return False
    if not readers_agree(rewriter, name, params):
        return False
    movers: _Movers = []
    if not _traced(rewriter, name, params, movers, _FARTHEST):
        return False
    for node_id, operands in movers:
        _retype(rewriter, node_id, operands, params)
    return True


def _traced(
    rewriter: Rewriter, name: str, params: QuantParams, movers: _Movers, steps: int
) -> bool:
    """Find the operators on the way, last one last, with the operands that they get."""
    node_id = rewriter.producer_id(name)
    if node_id is None or steps == 0:
        return False
    node = rewriter.node(node_id)
    if len(node.results) != 1 or not _keeps_codes(node):
        return False
    operands: list[str] = []
    for operand in node.operands:
        found = _operand(rewriter, operand, params, movers, steps - 1)
        if found is None:
            return False
        operands.append(found)
    if not _fits(rewriter, node, params):
        return False
    movers.append((node_id, operands))
    return True


def _keeps_codes(node: Node) -> bool:
    op = node.op
    known = type(op).__module__ in MOVABLE and not isinstance(op, StorageCast)
    return known and getattr(op, "out", None) is None


def _operand(
    rewriter: Rewriter, name: str, params: QuantParams, movers: _Movers, steps: int
) -> str | None:
    """The operand to read instead; None where its codes may mean something else."""
    kind = rewriter.types[name] if name else None
    if kind is None or kind.dtype is not params.storage:
        return name
    if kind.quant == params:
        return name
    if kind.quant is not None:
        return None
    if name in rewriter.constants:
        return name
    producer = rewriter.producer(name)
    if producer is None:
        return None
    if isinstance(producer.op, StorageCast):
        source = producer.operands[0]
        return source if rewriter.types[source].quant == params else None
    alone = len(rewriter.user_ids(name)) == 1 and not rewriter.is_output(name)
    return name if alone and _traced(rewriter, name, params, movers, steps) else None


def _typed(op: Op, params: QuantParams) -> Op:
    """The operator on codes: some say the parameters of their result."""
    return op.model_copy(update={"out": params}) if hasattr(op, "out") else op


def _fits(rewriter: Rewriter, node: Node, params: QuantParams) -> bool:
    kinds = [rewriter.types[name] if name else None for name in node.operands]
    typed = [
        quantized(params, kind.shape) if kind is not None and kind.dtype is params.storage else kind
        for kind in kinds
    ]
    try:
        (result,) = _typed(node.op, params).infer(typed)
    except (TypeFailure, ValueError):
        return False
    return result.quant == params


def _retype(rewriter: Rewriter, node_id: NodeId, operands: list[str], params: QuantParams) -> None:
    read = list(operands)
    for index, name in enumerate(operands):
        kind = rewriter.types[name] if name else None
        if kind is None or kind.dtype is not params.storage or kind.quant is not None:
            continue
        if name in rewriter.constants:
            read[index] = _typed_constant(rewriter, name, params)
    node = rewriter.remove(node_id)
    (result,) = node.results
    rewriter.types[result] = quantized(params, rewriter.types[result].shape)
    rewriter.emit(_typed(node.op, params), read, [result], sources=node.sources, before=node_id)


def _typed_constant(rewriter: Rewriter, name: str, params: QuantParams) -> str:
    """The constant with parameters: itself where nothing else reads it, else a copy."""
    kind = quantized(params, rewriter.types[name].shape)
    if len(rewriter.user_ids(name)) == 1 and not rewriter.is_output(name):
        rewriter.types[name] = kind
        return name
    return rewriter.add_constant(f"{name}.codes", rewriter.constants[name], kind)
