"""What onnxruntime makes of a model, and whether a graph computes in floats."""

from __future__ import annotations

import tempfile
from pathlib import Path

import onnx
import onnxruntime
from onnx import TensorProto
from onnxruntime.capi.onnxruntime_pybind11_state import Fail, InvalidGraph

_REAL = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE)


def integer_in_onnxruntime(model: onnx.ModelProto) -> bool:
    """Whether onnxruntime's own optimizations leave no operator that computes in floats.

    A model that it cannot load with them is none that it makes integer.
    """
    optimized = optimized_by_onnxruntime(model)
    return optimized is not None and not computes_in_floats(optimized)


def optimized_by_onnxruntime(model: onnx.ModelProto) -> onnx.ModelProto | None:
    """The graph that onnxruntime would run; None where its optimizations make it an invalid one."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "optimized.onnx")
        options.optimized_model_filepath = str(path)
        serialized = model.SerializeToString()
        try:
            onnxruntime.InferenceSession(serialized, options, ["CPUExecutionProvider"])
        except (Fail, InvalidGraph):
            return None
        return onnx.load(path)


def computes_in_floats(model: onnx.ModelProto) -> bool:
    """Whether an operator reads real values, or DQ -> Q remains.

    Real values are float graph inputs, results of DequantizeLinear and what is computed from them.
    What integer operators multiply by at the end (their scales) does not count.
    """
    real = {v.name for v in model.graph.input if v.type.tensor_type.elem_type in _REAL}
    dequantized = set[str]()
    for node in model.graph.node:
        if node.op_type == "QuantizeLinear":
            if node.input[0] in dequantized:
                return True
        elif node.op_type == "DequantizeLinear":
            dequantized.update(node.output)
        elif any(name in real or name in dequantized for name in node.input):
            return True
    return False
