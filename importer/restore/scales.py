"""Give a model's kernels and quantizers the scales that the graph had before its export.

This is done on the ONNX nodes, so that the import reads them like any others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper, numpy_helper

from intonnx.importer.load import LoadedModel
from intonnx.ir.changes import Changes, Moved, Multiplied
from intonnx.ir.storage import OFFSET
from intonnx.ir.types import Array

_NEARLY = 1e-6
"""How far a kernel's scale may be from the true one, relatively: 8 units in the last place."""
_SMALLEST = 2.0**-100
"""Codes times a scale from here to its reciprocal are exact in float32."""
_BINARY = ("QLinearAdd", "QLinearMul")


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
        if node.op_type == "QuantizeLinear" and result in changes.multipliers:
            _divide_back(node, changes.multipliers[result], makers, known, graph)
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
        node.input[index] = _added(graph, f"{node.output[0]}.scale{index}", np.float32(scale))


def _divide_back(
    node: onnx.NodeProto,
    scales: Multiplied,
    makers: Mapping[str, onnx.NodeProto],
    known: Mapping[str, onnx.TensorProto],
    graph: onnx.GraphProto,
) -> None:
    """Let Mul by a multiplier -> Q by 1 be Mul by the scale of the sums -> Q by that of the result.

    Only where the quotient of these scales, rounded to float32, is the multiplier.
    """
    product = makers.get(node.input[0])
    if product is None or product.op_type != "Mul" or len(product.input) != 2:
        return
    factors, one = known.get(product.input[1]), known.get(node.input[1])
    if factors is None or one is None or not np.all(numpy_helper.to_array(one) == 1):
        return
    k, ones = numpy_helper.to_array(factors), numpy_helper.to_array(one)
    sums, out = (np.asarray(scale, np.float32) for scale in (scales.sums, scales.out))
    if k.dtype != np.float32 or not {sums.size, out.size} <= {1, k.size} or out.size != ones.size:
        return
    sums, along = (_like(scale, k) for scale in (sums, out))
    with np.errstate(all="ignore"):
        if not np.array_equal(np.broadcast_to(sums / along, k.shape), k):
            return
    result = node.output[0]
    product.input[1] = _added(graph, f"{result}.sums.scale", sums)
    node.input[1] = _added(graph, f"{result}.scale", out.reshape(ones.shape))


def _like(scale: Array, factors: Array) -> Array:
    return scale.reshape(factors.shape if scale.size == factors.size else ())


def _added(graph: onnx.GraphProto, name: str, value: npt.ArrayLike) -> str:
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
    scale = _added(graph, f"{result}.scale", np.float32(move.scale))
    zeros = [
        _added(graph, f"{result}.zero{i}", np.asarray(zero).astype(kind))
        for i, (zero, kind) in enumerate(zip((move.zero, move.to_zero), types, strict=True))
    ]
    # The export has a value of the name `.real` where it dequantizes the result.
    real = f"{result}.between"
    return [
        helper.make_node("DequantizeLinear", [move.source, scale, zeros[0]], [real]),
        helper.make_node("QuantizeLinear", [real, scale, zeros[1]], [result]),
    ]
