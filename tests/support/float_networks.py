"""A small float network, and what onnxruntime's own tool makes of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

Array = np.ndarray[Any, Any]
SHAPE = (1, 3, 8, 8)


def float_network(seed: int = 0) -> onnx.ModelProto:
    """Two convolutions with relus, the second with one channel of large weights, and a Gemm."""
    rng = np.random.default_rng(seed)

    def normal(*shape: int) -> Array:
        return rng.normal(0, 0.3, shape).astype(np.float32)

    w2 = normal(4, 4, 3, 3)
    w2[0] *= 40
    weights = {
        "w1": normal(4, 3, 3, 3), "b1": normal(4), "w2": w2, "b2": normal(4),
        "w3": normal(6, 4 * 8 * 8), "b3": normal(6),
    }  # fmt: skip
    nodes = [
        helper.make_node("Conv", ["x", "w1", "b1"], ["c1"], "conv1", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c1"], ["r1"], "relu1"),
        helper.make_node("Conv", ["r1", "w2", "b2"], ["c2"], "conv2", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c2"], ["r2"], "relu2"),
        helper.make_node("Flatten", ["r2"], ["f"], "flatten"),
        helper.make_node("Gemm", ["f", "w3", "b3"], ["y"], "gemm", transB=1),
    ]
    values = [
        helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)
        for name, shape in (("x", ["N", *SHAPE[1:]]), ("y", ["N", 6]))
    ]
    constants = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    graph = helper.make_graph(nodes, "net", values[:1], values[1:], constants)
    opsets = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def images(count: int, seed: int = 1) -> list[Array]:
    """Inputs for it."""
    rng = np.random.default_rng(seed)
    return [rng.normal(0, 1, SHAPE).astype(np.float32) for _ in range(count)]


def quantized_network(folder: Path, *, qoperator: bool = False) -> Path:
    """The network quantized by onnxruntime, per tensor, from a few images."""
    from onnxruntime import quantization as q  # type: ignore[import-untyped]

    class Reader(q.CalibrationDataReader):  # type: ignore[misc]
        def __init__(self) -> None:
            self._samples = iter([{"x": image} for image in images(8)])

        def get_next(self) -> Any:
            return next(self._samples, None)

    source, target = folder / "float.onnx", folder / "quantized.onnx"
    onnx.save(float_network(), source)
    form = q.QuantFormat.QOperator if qoperator else q.QuantFormat.QDQ
    q.quantize_static(str(source), str(target), Reader(), quant_format=form)
    return target
