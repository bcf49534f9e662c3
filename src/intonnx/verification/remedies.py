"""What would help a layer that loses much: the same layer with one change, computed again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from intonnx.ir.errors import IntonnxError
from intonnx.ir.graph import Graph, Node
from intonnx.ir.ops.conv import Conv
from intonnx.ir.ops.dense import MatrixProduct
from intonnx.ir.types import Array, DType, QuantParams, Record, quantized
from intonnx.lowering.executable import compile_graph

from .operators import alone, with_accumulators
from .statistics import real, real_sums

GAIN = 1.0
"""In dB: a change that brings less is not worth a line."""


class Remedy(Record):
    """One change of a layer, and what its SQNR is then, on the float model's values.

    Attributes:
        change: what is changed, as a sentence part.
        before, after: the SQNR of the layer alone in dB, without and with it.
    """

    change: str
    before: float
    after: float


def remedies_for(
    graph: Graph, name: str, codes: Mapping[str, Array], wanted: Array, float_graph: Graph
) -> tuple[Remedy, ...]:
    """The changes that raise the SQNR of the layer that makes `name`, the best first.

    Args:
        graph: the quantized graph.
        name: the codes that the layer makes.
        codes: values of the float model, quantized as the graph has them.
        wanted: the float model's value for `name`.
        float_graph: the float model, for its weights.
    """
    node = graph.producers.get(name)
    if node is None or graph.types[name].quant is None:
        return ()
    layer = alone(graph, with_accumulators(graph, node))
    if any(given not in codes for given in layer.inputs):
        return ()
    before = _sqnr(layer, name, codes, wanted)
    if before is None:
        return ()
    found: list[Remedy] = []
    for change, changed in _changes(layer, name, wanted, float_graph):
        after = _sqnr(changed, name, codes, wanted)
        if after is not None and after >= before + GAIN:
            found.append(Remedy(change=change, before=before, after=after))
    return tuple(sorted(found, key=lambda remedy: -remedy.after))


def _sqnr(layer: Graph, name: str, codes: Mapping[str, Array], wanted: Array) -> float | None:
    try:
        inputs = {given: codes[given] for given in layer.inputs}
        ours = compile_graph(layer, "qlinear").run(inputs)[name]
    except (IntonnxError, ValueError):
        return None  # the change is not possible for this operator
    return real_sums(real(layer.types[name], ours), wanted).sqnr


def _changes(
    layer: Graph, name: str, wanted: Array, float_graph: Graph
) -> Iterator[tuple[str, Graph]]:
    params = layer.types[name].params
    if params.per_tensor and params.storage.bits <= 8:
        fitted = _fitted(wanted, params)
        if fitted.scale != params.scale:
            what = "wider" if fitted.scale > params.scale else "narrower"
            text = f"a {what} output scale, {float(fitted.scale):.6g} with zero point"
            yield f"{text} {fitted.scalar_zero_point}", _with_result(layer, name, fitted)
        yield "16 bits for the output", _with_result(layer, name, _sixteen_bits(params))
    for node in layer.nodes:
        if isinstance(node.op, Conv | MatrixProduct):
            changed = _per_channel(layer, node, float_graph)
            if changed is not None:
                yield "weights with a scale for each channel", changed


def _fitted(wanted: Array, params: QuantParams) -> QuantParams:
    """Per-tensor parameters that cover just the values of the float model."""
    low, high = min(float(wanted.min()), 0.0), max(float(wanted.max()), 0.0)
    steps = params.qmax - params.qmin
    scale = np.float32((high - low) / steps or 1.0)
    zero = int(np.clip(round(params.qmin - low / float(scale)), params.qmin, params.qmax))
    return params.model_copy(update={"scale": np.asarray(scale), "zero_point": np.asarray(zero)})


def _sixteen_bits(params: QuantParams) -> QuantParams:
    """The same range in steps 256 times finer."""
    storage = DType.I16 if params.storage.signed else DType.U16
    finer = 1 << (16 - params.storage.bits)
    return QuantParams(
        storage=storage,
        scale=params.scale / np.float32(finer),
        zero_point=params.zero_point * finer,
        expressed=params.expressed,
    )


def _with_result(layer: Graph, name: str, params: QuantParams) -> Graph:
    nodes = [
        replace(node, op=node.op.model_copy(update={"out": params}))
        if name in node.results and hasattr(node.op, "out")
        else node
        for node in layer.nodes
    ]
    types = {**layer.types, name: quantized(params, layer.types[name].shape)}
    return replace(layer, nodes=tuple(nodes), types=types)


def _per_channel(layer: Graph, node: Node, float_graph: Graph) -> Graph | None:
    """The layer with its weights quantized again from the float ones, a scale for each channel."""
    name = node.operands[1]
    kind, x = layer.types[name], layer.types[node.operands[0]]
    if name not in layer.constants or kind.quant is None or not kind.params.per_tensor:
        return None
    axis = 0 if isinstance(node.op, Conv) else 1
    weights = _float_weights(layer.constants[name], kind.params, float_graph)
    if weights is None or weights.ndim <= axis or x.quant is None or not x.params.per_tensor:
        return None
    others = tuple(i for i in range(weights.ndim) if i != axis)
    largest = np.abs(weights).max(axis=others)
    scale = np.where(largest > 0, largest / 127, 1).astype(np.float32)
    spread = scale.reshape([-1 if i == axis else 1 for i in range(weights.ndim)])
    codes = np.clip(np.rint(weights / spread), -127, 127).astype(np.int8)
    zeros = np.zeros(scale.shape, np.int64)
    params = QuantParams(storage=DType.I8, scale=scale, zero_point=zeros, axis=axis)
    types = {**layer.types, name: quantized(params, kind.shape)}
    constants = {**layer.constants, name: codes}
    if len(node.operands) > 2 and (bias := node.operands[2]):
        if bias not in layer.constants:
            return None
        before = layer.types[node.results[0]].params.scale.astype(np.float64)
        after = (x.params.scale * scale).astype(np.float64)
        constants[bias] = np.rint(layer.constants[bias] * (before / after)).astype(np.int32)
    changed = replace(layer, types=types, constants=constants)
    operands = [types[given] if given else None for given in node.operands]
    try:
        (sums,) = node.op.infer(operands)
    except IntonnxError:
        return None
    return replace(changed, types={**types, node.results[0]: sums})


def _float_weights(codes: Array, params: QuantParams, float_graph: Graph) -> Array | None:
    """The float weights that these codes were made from: the nearest of the same size."""
    real_codes = (codes.astype(np.float64) - params.scalar_zero_point) * float(params.scalar_scale)
    best: tuple[float, Array] | None = None
    for array in float_graph.constants.values():
        if array.dtype.kind != "f":
            continue
        for view in (array, array.T):
            if view.shape == codes.shape:
                error = float(np.abs(view - real_codes).max())
                if best is None or error < best[0]:
                    best = (error, view.astype(np.float64))
    limit = float(params.scalar_scale) * 2
    return best[1] if best is not None and best[0] <= limit else None
