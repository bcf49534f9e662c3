"""onnxruntime as the second oracle, exact also on CPUs without VNNI.

Measured on AVX2 (no VNNI), onnxruntime 1.32, codes at the ends of their range: u8 activation with
s8 weight saturates sums of two products to int16 in QLinearConv (except depthwise), QLinearMatMul,
QGemm, MatMulInteger, MatMulIntegerToFloat, DynamicQuantizeMatMul and QAttention; s8 activation with
u8 weight does so in ConvInteger. Equal storage types are exact everywhere, and `exact_model` makes
them so.
(The session option session.x64quantprecision does the same for optimized runs, but then refuses
every model that has an s8 activation with an s8 weight.)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

Array = npt.NDArray[Any]


class _Slots(NamedTuple):
    """Input positions of an operator that multiplies codes; -1: none."""

    activation_zero: int
    weight: int
    weight_zero: int


_SLOTS = {
    "QLinearConv": _Slots(2, 3, 5),
    "QLinearMatMul": _Slots(2, 3, 5),
    "QGemm": _Slots(2, 3, 5),
    "MatMulInteger": _Slots(2, 1, 3),
    "ConvInteger": _Slots(2, 1, 3),
    "MatMulIntegerToFloat": _Slots(4, 1, 5),
    "DynamicQuantizeMatMul": _Slots(-1, 1, 3),
    "QAttention": _Slots(6, 1, 7),
}

_MOVERS = ("Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze")


def run_onnxruntime(
    model: onnx.ModelProto | bytes,
    inputs: Mapping[str, Any],
    *,
    optimized: bool,
    threads: int = 1,
    exact: bool = True,
) -> dict[str, Array]:
    """Run a model on the CPU, sequentially and deterministically: output name -> array.

    With `exact` the model first goes through `exact_model`.
    """
    options = onnxruntime.SessionOptions()
    level = onnxruntime.GraphOptimizationLevel
    options.graph_optimization_level = level.ORT_ENABLE_ALL if optimized else level.ORT_DISABLE_ALL
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.use_deterministic_compute = True
    options.log_severity_level = 4
    if exact:
        model = exact_model(model)
    serialized = model if isinstance(model, bytes) else model.SerializeToString()
    session = onnxruntime.InferenceSession(serialized, options, ["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    results: list[Any] = list(session.run(names, dict(inputs)))
    return dict(zip(names, results, strict=True))


def expose(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy in which every value of the top graph is also a graph output."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    known = {output.name for output in copy.graph.output}
    for node in copy.graph.node:
        for name in node.output:
            if name and name not in known:
                copy.graph.output.append(onnx.ValueInfoProto(name=name))
    return copy


def exact_model(model: onnx.ModelProto | bytes) -> onnx.ModelProto:
    """A value-preserving copy without the int16 hazard in the operators of the top graph.

    Where activation and weight have different 8-bit types the weight takes the activation's: code
    and zero point move by 128. A weight that is not constant gets Cast -> Add -> Cast. A constant
    s8 weight behind a DequantizeLinear is changed there, so optimized QDQ models are exact too.
    """
    copy = onnx.ModelProto()
    if isinstance(model, bytes):
        copy.ParseFromString(model)
    else:
        copy.CopyFrom(model)
    types = _element_types(copy)
    shifter = _Shifter(copy.graph)
    weights = _dequantized_weights(copy.graph, types)
    nodes: list[onnx.NodeProto] = []
    for node in copy.graph.node:
        slots = _SLOTS.get(node.op_type)
        if slots is not None:
            activation = _activation_type(node, slots, types)
            weight = types.get(node.input[slots.weight], TensorProto.UNDEFINED)
            if _hazard(node.op_type, activation, weight):
                shifter.rewire(node, slots.weight, slots.weight_zero, weight)
        elif node.output[:1] and node.output[0] in weights and node.input[0] in shifter.constants:
            shifter.rewire(node, 0, 2, TensorProto.INT8)
        nodes.extend([*shifter.take(), node])
    del copy.graph.node[:]
    copy.graph.node.extend(nodes)
    return copy


def _hazard(op_type: str, activation: int, weight: int) -> bool:
    if activation == TensorProto.UINT8 and weight == TensorProto.INT8:
        return True
    mixed = activation == TensorProto.INT8 and weight == TensorProto.UINT8
    return mixed and op_type == "ConvInteger"


def _element_types(model: onnx.ModelProto) -> dict[str, int]:
    """Element type of every tensor that inference, initializers or zero points tell of."""
    try:
        graph = onnx.shape_inference.infer_shapes(model).graph
    except onnx.shape_inference.InferenceError:
        graph = model.graph
    types: dict[str, int] = {
        value.name: value.type.tensor_type.elem_type
        for value in [*graph.input, *graph.value_info, *graph.output]
    }
    types.update({tensor.name: tensor.data_type for tensor in model.graph.initializer})
    for node in model.graph.node:
        for a in node.attribute:
            if node.op_type == "Constant" and a.name == "value":
                types[node.output[0]] = a.t.data_type
        if node.op_type == "DynamicQuantizeLinear":
            types[node.output[0]] = types[node.output[2]] = TensorProto.UINT8
    return types


def _dequantized_weights(graph: onnx.GraphProto, types: dict[str, int]) -> set[str]:
    """Outputs of s8 DequantizeLinear nodes that meet a dequantized u8 activation in a product."""
    producer = {name: node for node in graph.node for name in node.output}

    def dequantize(name: str) -> onnx.NodeProto | None:
        node = producer.get(name)
        while node is not None and node.op_type in _MOVERS:
            node = producer.get(node.input[0])
        return node if node is not None and node.op_type == "DequantizeLinear" else None

    found = set()
    for node in graph.node:
        if node.op_type in ("Conv", "ConvTranspose", "Gemm", "MatMul"):
            activation, weight = (dequantize(name) for name in node.input[:2])
            if activation is None or weight is None:
                continue
            kinds = types.get(activation.input[0]), types.get(weight.input[0])
            if kinds == (TensorProto.UINT8, TensorProto.INT8):
                found.add(weight.output[0])
    return found


def _activation_type(node: onnx.NodeProto, slots: _Slots, types: dict[str, int]) -> int:
    if slots.activation_zero < 0:
        return TensorProto.UINT8
    if len(node.input) > slots.activation_zero and node.input[slots.activation_zero]:
        return types.get(node.input[slots.activation_zero], TensorProto.UNDEFINED)
    return types.get(node.input[0], TensorProto.UNDEFINED)


class _Shifter:
    """Makes the other 8-bit type's version of tensors, one for each."""

    def __init__(self, graph: onnx.GraphProto) -> None:
        self.graph = graph
        overridable = {value.name for value in graph.input}
        self.constants = {t.name: t for t in graph.initializer if t.name not in overridable}
        for node in graph.node:
            for a in node.attribute:
                if node.op_type == "Constant" and a.name == "value":
                    self.constants[node.output[0]] = a.t
        self.done: set[str] = set()
        self.pending: list[onnx.NodeProto] = []

    def rewire(self, node: onnx.NodeProto, weight: int, zero: int, element_type: int) -> None:
        """Make a node read the other type's version of its weight and zero point."""
        names = list(node.input) + [""] * (zero + 1 - len(node.input))
        names[weight] = self._shift(names[weight], element_type)
        if names[zero]:
            names[zero] = self._shift(names[zero], element_type)
        else:  # an absent zero point is 0; behind a DequantizeLinear it has the scale's shape
            per_axis = node.op_type == "DequantizeLinear" and names[1] in self.constants
            shape = list(self.constants[names[1]].dims) if per_axis else []
            fresh = f"{names[weight]}__zero"
            self._add(fresh, np.zeros(shape, np.int32), element_type)
            names[zero] = fresh
        del node.input[:]
        node.input.extend(names)

    def take(self) -> list[onnx.NodeProto]:
        """The nodes made since the last call."""
        nodes, self.pending = self.pending, []
        return nodes

    def _add(self, fresh: str, value: Array, element_type: int) -> None:
        target, offset = _target(element_type)
        if fresh not in self.done:
            moved = (np.asarray(value).astype(np.int32) + offset).astype(target)
            self.graph.initializer.append(numpy_helper.from_array(np.asarray(moved), fresh))
            self.done.add(fresh)

    def _shift(self, name: str, element_type: int) -> str:
        target, offset = _target(element_type)
        fresh = f"{name}__as_{np.dtype(target).name}"
        if fresh in self.done:
            return fresh
        if name in self.constants:
            self._add(fresh, numpy_helper.to_array(self.constants[name]), element_type)
            return fresh
        self.done.add(fresh)
        by, wide, moved = f"{fresh}__offset", f"{fresh}__wide", f"{fresh}__moved"
        self.graph.initializer.append(numpy_helper.from_array(np.array(offset, np.int32), by))
        to = helper.np_dtype_to_tensor_dtype(np.dtype(target))
        self.pending += [
            helper.make_node("Cast", [name], [wide], to=TensorProto.INT32),
            helper.make_node("Add", [wide, by], [moved]),
            helper.make_node("Cast", [moved], [fresh], to=to),
        ]
        return fresh


def _target(element_type: int) -> tuple[type[np.uint8] | type[np.int8], int]:
    return (np.uint8, 128) if element_type == TensorProto.INT8 else (np.int8, -128)
