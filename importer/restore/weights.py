"""Weights and plain codes with the types and scales that they had before an export."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from intonnx.ir.changes import Stored
from intonnx.ir.errors import TypeFailure
from intonnx.ir.ops.conv import Conv
from intonnx.ir.ops.dense import MatrixProduct
from intonnx.ir.ops.storage_cast import StorageCast
from intonnx.ir.rewriter import NodeId, Rewriter
from intonnx.ir.types import Array, QuantParams, TensorType, quantized

_CODES = ".codes"
"""What an import adds to the name of a constant that it gives parameters."""


def restore_weights(rewriter: Rewriter, storage: Mapping[str, Stored]) -> None:
    """Give constants the types that they had, where their codes mean the same in these."""
    for node_id in rewriter.node_ids():
        if isinstance(rewriter.node(node_id).op, Conv | MatrixProduct):
            _split_scales(rewriter, node_id, storage)
    for name in list(rewriter.constants):
        old, kind = _stored(name, storage), rewriter.types[name]
        if old is None or not rewriter.user_ids(name):
            continue
        params = None if kind.quant is None else _stored_params(kind.params, old)
        if params is None:
            continue
        codes = _stored_codes(rewriter.constants[name], kind.params, params)
        if codes is not None and (old.name != name or params != kind.params):
            own = rewriter.add_constant(old.name, codes, quantized(params, kind.shape))
            rewriter.replace_uses(name, own)


def _stored(name: str, storage: Mapping[str, Stored]) -> Stored | None:
    return storage.get(name) or storage.get(name.removesuffix(_CODES))


def _split_scales(rewriter: Rewriter, node_id: NodeId, storage: Mapping[str, Stored]) -> None:
    """Share the scale of a product's sums between its operands as it was shared before.

    The model may say the scale of the sums only. Nothing is done where the product of the two
    scales is another.
    """
    node = rewriter.node(node_id)
    kinds = [rewriter.types[name] if name else None for name in node.operands]
    made: list[tuple[int, TensorType]] = []
    for index, name in enumerate(node.operands[:2]):
        kind, old = kinds[index], _stored(_plain(rewriter, name), storage)
        if old is None or not old.scale or kind is None or kind.quant is None:
            continue
        if np.size(kind.quant.scale) not in (1, len(old.scale)) or len(rewriter.user_ids(name)) > 1:
            continue
        kinds[index] = scaled = quantized(_scaled(kind.quant, old.scale), kind.shape)
        made.append((index, scaled))
    try:
        (inferred,) = node.op.infer(kinds)
    except TypeFailure:
        return
    if not made or inferred.quant != rewriter.types[node.results[0]].quant:
        return
    operands = list(node.operands)
    for index, kind in made:
        operands[index] = _retyped(rewriter, node_id, operands[index], kind)
    rewriter.update(node_id, replace(rewriter.node(node_id), operands=tuple(operands)))


def _plain(rewriter: Rewriter, name: str) -> str:
    """The plain integers that a storage cast gave parameters, else the value itself."""
    producer = rewriter.producer(name)
    if producer is not None and isinstance(producer.op, StorageCast):
        return producer.operands[0]
    return name


def _retyped(rewriter: Rewriter, node_id: NodeId, name: str, kind: TensorType) -> str:
    if name in rewriter.constants:
        rewriter.types[name] = kind
        return name
    producer_id = rewriter.producer_id(name)
    assert producer_id is not None
    producer = rewriter.remove(producer_id)
    op = StorageCast(out=kind.quant)
    rewriter.emit(op, producer.operands, [name], sources=producer.sources, before=node_id)
    return name


def _scaled(params: QuantParams, scale: tuple[float, ...]) -> QuantParams:
    values = np.asarray(scale, np.float32)
    per_tensor = values.size == 1 and params.per_tensor
    return params.model_copy(update={"scale": values.reshape(()) if per_tensor else values})


def _stored_params(params: QuantParams, old: Stored) -> QuantParams | None:
    """The parameters with the storage and zero points as they were, if there are as many."""
    zeros = np.asarray(old.zero, np.int32)
    if zeros.size not in (1, params.scale.size):
        return None
    zeros = np.broadcast_to(zeros.reshape(-1)[:1] if zeros.size == 1 else zeros, params.scale.size)
    return QuantParams(
        storage=old.storage,
        scale=params.scale,
        zero_point=zeros.reshape(params.scale.shape),
        axis=params.axis,
        block=params.block,
        expressed=params.expressed,
    )


def _stored_codes(codes: Array, params: QuantParams, to: QuantParams) -> Array | None:
    """The codes that mean the same with other zero points, if they are in range."""
    shifted = codes.astype(np.int64) + _for_codes(to.zero_point - params.zero_point, codes, params)
    if shifted.size and (shifted.min() < to.storage.low or shifted.max() > to.storage.high):
        return None
    return np.asarray(shifted.astype(to.storage.numpy))


def _for_codes(zeros: Array, codes: Array, params: QuantParams) -> Array:
    """Zero points in a shape that broadcasts to that of the codes."""
    if params.axis is None:
        return zeros
    if params.block is not None:
        spread = np.repeat(zeros, params.block, params.axis)
        return spread.take(range(codes.shape[params.axis]), params.axis)
    return zeros.reshape([-1 if axis == params.axis else 1 for axis in range(codes.ndim)])
