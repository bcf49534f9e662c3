"""Undo what an export changed for its target, as the model's metadata say it.

Metadata are not to be trusted, so nothing here can change a value: codes and zero points shift
together, scales go back by a few units in the last place at most.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper, numpy_helper
from pydantic import ValidationError

from intonnx.ir.changes import KEY, Changes, Moved, Stored
from intonnx.ir.errors import IntonnxError
from intonnx.ir.graph import Graph, Node
from intonnx.ir.ops.lut import Lut
from intonnx.ir.ops.quantize import Requantize
from intonnx.ir.ops.storage_cast import StorageCast
from intonnx.ir.rewriter import Rewriter
from intonnx.ir.storage import OFFSET, WEIGHTED, shifted_operator, signed_params
from intonnx.ir.types import Array, DType, QuantParams, TensorType, quantized

from .load import LoadedModel

_NEARLY = 1e-6
"""How far a kernel's scale may be from the true one, relatively: 8 units in the last place."""
_SMALLEST = 2.0**-100
"""Codes times a scale from here to its reciprocal are exact in float32."""
_BINARY = ("QLinearAdd", "QLinearMul")


def changes_of(model: LoadedModel) -> Changes | None:
    """What the export that wrote this model changed; None where it says nothing readable."""
    for entry in model.proto.metadata_props:
        if entry.key == KEY:
            try:
                return Changes.model_validate_json(entry.value)
            except ValidationError:
                return None
    return None


def with_true_scales(model: LoadedModel, changes: Changes) -> LoadedModel:
    """The model with the scales of sums and products, and codes that moved as DQ -> Q."""
    proto = onnx.ModelProto()
    proto.CopyFrom(model.proto)
    graph = proto.graph
    known = {tensor.name: tensor for tensor in graph.initializer}
    makers = {name: node for node in graph.node for name in node.output}
    nodes: list[onnx.NodeProto] = []
    for node in graph.node:
        result = node.output[0] if node.output else ""
        if node.op_type in _BINARY and result in changes.scales:
            _scale_back(node, changes.scales[result], known, graph)
        move = changes.moves.get(result)
        if move is not None and _is_move(node, move, makers, known):
            nodes += _requantized(move, result, known[makers[node.input[0]].input[1]], graph)
        else:
            nodes.append(node)
    del graph.node[:]
    graph.node.extend(nodes)
    return replace(model, proto=proto)


def _scale_back(
    node: onnx.NodeProto,
    scales: tuple[float, float],
    known: Mapping[str, onnx.TensorProto],
    graph: onnx.GraphProto,
) -> None:
    for index, scale in zip((1, 4), scales, strict=True):
        tensor = known.get(node.input[index])
        if tensor is None or tensor.dims:
            return
        if not np.isclose(numpy_helper.to_array(tensor), scale, rtol=_NEARLY, atol=0.0):
            return
    for index, scale in zip((1, 4), scales, strict=True):
        node.input[index] = _scalar(graph, f"{node.output[0]}.scale{index}", np.float32(scale))


def _scalar(graph: onnx.GraphProto, name: str, value: npt.ArrayLike) -> str:
    graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))
    return name


def _is_move(
    cast: onnx.NodeProto,
    move: Moved,
    makers: Mapping[str, onnx.NodeProto],
    known: Mapping[str, onnx.TensorProto],
) -> bool:
    """Whether this is Cast -> Add -> Cast of the codes that are named, by the named difference."""
    add = makers.get(cast.input[0]) if cast.op_type == "Cast" else None
    if add is None or add.op_type != "Add" or add.input[1] not in known:
        return False
    first = makers.get(add.input[0])
    if first is None or first.op_type != "Cast" or list(first.input) != [move.source]:
        return False
    if not _SMALLEST < move.scale < 1 / _SMALLEST:
        return False
    offset = numpy_helper.to_array(known[add.input[1]])
    return offset.size == 1 and abs(int(offset.item())) == OFFSET == abs(move.to_zero - move.zero)


def _requantized(
    move: Moved, result: str, offset: onnx.TensorProto, graph: onnx.GraphProto
) -> list[onnx.NodeProto]:
    up = int(numpy_helper.to_array(offset).item()) > 0
    types = (np.int8, np.uint8) if up else (np.uint8, np.int8)
    scale = _scalar(graph, f"{result}.scale", np.float32(move.scale))
    zeros = [
        _scalar(graph, f"{result}.zero{i}", np.asarray(zero).astype(kind))
        for i, (zero, kind) in enumerate(zip((move.zero, move.to_zero), types, strict=True))
    ]
    # The export has a value of the name `.real` where it dequantizes the result.
    real = f"{result}.between"
    return [
        helper.make_node("DequantizeLinear", [move.source, scale, zeros[0]], [real]),
        helper.make_node("QuantizeLinear", [real, scale, zeros[1]], [result]),
    ]


def restored(graph: Graph, changes: Changes) -> Graph:
    """The graph with codes in the types that they had.

    Raises IntonnxError or ValueError where an operator knows no other codes. True scales belong to
    codes in their true types, so then neither may be taken back.
    """
    return _Restoration(graph, changes.storage).graph()


class _Restoration:
    """The graph under change."""

    def __init__(self, graph: Graph, storage: Mapping[str, Stored]) -> None:
        self._graph = graph
        self._storage = storage
        self._back = {
            name for name, old in storage.items()
            if name in graph.types and self._shifts(name, old)
        }  # fmt: skip
        for node in graph.nodes:
            # The same codes: narrower ranges of the export come back as casts.
            if isinstance(node.op, StorageCast) and node.operands[0] in self._back:
                self._back.update(filter(self._may_shift, node.results))
        self._types = dict(graph.types)
        self._constants = dict(graph.constants)
        self._tables: dict[str, Array] = {}

    def _shifts(self, name: str, old: Stored) -> bool:
        """Whether a value is an activation whose codes go down by 128, or a constant beside one."""
        weights = name in self._graph.constants and all(
            isinstance(node.op, WEIGHTED) and node.operands.count(name) == 1
            and node.operands[1] == name
            for node in self._graph.users.get(name, ())
        )  # fmt: skip
        return old.storage is DType.I8 and not weights and self._may_shift(name)

    def _may_shift(self, name: str) -> bool:
        """Whether a value is quantized in u8 with one zero point, and no caller sees its type."""
        kind = self._graph.types[name]
        ends = {*self._graph.inputs, *self._graph.outputs}
        u8 = kind.dtype is DType.U8 and kind.quant is not None and kind.params.per_tensor
        return u8 and name not in ends

    def graph(self) -> Graph:
        """The graph with activations and weights back in their types."""
        for name in self._back:
            self._shift(name)
        nodes = [self._operator(node) for node in self._graph.nodes]
        graph = replace(
            self._graph, nodes=tuple(nodes), types=self._types, constants=self._constants
        )
        _check(graph)
        rewriter = Rewriter(graph)
        _drop_moves(rewriter)
        self._restore_weights(rewriter)
        return rewriter.finish()

    def _shift(self, name: str) -> None:
        kind = self._types[name]
        self._types[name] = quantized(signed_params(kind.params), kind.shape)
        if name in self._constants:
            self._constants[name] = _moved(self._constants[name], -OFFSET, DType.I8)

    def _operator(self, node: Node) -> Node:
        touched = [name for name in (*node.operands, *node.results) if name in self._back]
        if not touched:
            return node
        operands = list(node.operands)
        reads = operands[0] in self._back
        makes = any(name in self._back for name in node.results)
        table = self._graph.constants.get(operands[1]) if isinstance(node.op, Lut) else None
        found = shifted_operator(node.op, reads, makes, table, -OFFSET)
        if found is None:
            raise IntonnxError("its codes have no other type", node=node.label)
        if found.table is not None:
            name = f"{node.results[0]}.table"
            while name in self._types:
                name += ".s8"
            self._constants[name] = found.table
            dtype = DType.I8 if found.table.dtype == np.int8 else DType.U8
            self._types[name] = TensorType(dtype=dtype, shape=found.table.shape)
            operands[1] = name
        return replace(node, op=found.op, operands=tuple(operands))

    def _restore_weights(self, rewriter: Rewriter) -> None:
        for name, old in self._storage.items():
            kind = rewriter.types.get(name)
            if name in self._back or kind is None or name not in rewriter.constants:
                continue
            params = None if kind.quant is None else _stored_params(kind.params, old)
            if params is None:
                continue
            codes = _stored_codes(rewriter.constants[name], kind.params, params)
            if codes is not None:
                own = rewriter.add_constant(old.name, codes, quantized(params, kind.shape))
                rewriter.replace_uses(name, own)


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


def _moved(codes: Array, by: int, storage: DType) -> Array:
    return np.asarray((codes.astype(np.int16) + by).astype(storage.numpy))


def _check(graph: Graph) -> None:
    """Raise TypeFailure unless every operator gives the types that its results should have."""
    for node in graph.nodes:
        kinds = node.op.infer(graph.operand_types(node))
        for name, kind in zip(node.results, kinds, strict=False):
            wanted = graph.types.get(name, kind)
            if (kind.dtype, kind.quant) != (wanted.dtype, wanted.quant):
                raise IntonnxError(f"'{name}' would have another type", node=node.label)


def _drop_moves(rewriter: Rewriter) -> None:
    """Take out the requantizes that move nothing any more."""
    for node_id in rewriter.node_ids():
        node = rewriter.node(node_id)
        if not isinstance(node.op, Requantize):
            continue
        (codes,), (result,) = node.operands, node.results
        if rewriter.types[codes].quant != node.op.out:
            continue
        if not rewriter.is_output(result):
            rewriter.remove(node_id)
            rewriter.replace_uses(result, codes)
        elif rewriter.producer(codes) is not None and not rewriter.is_output(codes):
            rewriter.remove(node_id)
            rewriter.rename(codes, result)
