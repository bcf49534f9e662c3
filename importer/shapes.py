"""Types and shapes of float values: the onnx package's inference, on the model and on one node."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx
from onnx import numpy_helper

from intonnx.ir.types import Array, DType, TensorType
from intonnx.protos import proto_of, type_of

from .load import LoadedModel, is_typed

_SMALL = 1024
"""Constants up to this many elements are given to the inference of a node: shapes, axes, pads."""


def declared_types(proto: onnx.ModelProto) -> dict[str, TensorType]:
    """The types that the model declares or that the onnx package infers for it."""
    try:
        inferred = onnx.shape_inference.infer_shapes(proto, data_prop=True)
    except Exception:  # inference is a help, not a check: what it cannot do is left unknown
        inferred = proto
    graph = inferred.graph
    values = [value for value in [*graph.value_info, *graph.output] if is_typed(value)]
    return {value.name: type_of(value.type) for value in values}


def infer_result_types(
    node: onnx.NodeProto,
    types: Mapping[str, TensorType],
    constants: Mapping[str, Array],
    model: LoadedModel,
) -> dict[str, TensorType]:
    """The result types of one node from the types of its inputs; empty where onnx cannot tell."""
    version = model.opsets.get(node.domain if node.domain != "ai.onnx" else "")
    if version is None or not onnx.defs.has(node.op_type, node.domain):
        return {}
    names = [name for name in node.input if name]
    if any(types[name].dtype is DType.CONTAINER for name in names):
        return {}
    data = {
        name: numpy_helper.from_array(np.ascontiguousarray(constants[name]), name)
        for name in names
        if name in constants and constants[name].size <= _SMALL and constants[name].dtype != object
    }
    try:
        inferred = onnx.shape_inference.infer_node_outputs(
            onnx.defs.get_schema(node.op_type, version, node.domain),
            node,
            {name: proto_of(types[name]) for name in names},
            data,
            opset_imports=[onnx.helper.make_opsetid(d, v) for d, v in model.opsets.items()],
        )
    except Exception:  # as above
        return {}
    return {name: type_of(kind) for name, kind in inferred.items()}
