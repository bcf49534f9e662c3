"""onnxruntime as a reference, where it is installed. Nothing else in intonnx needs it."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from intonnx.ir.errors import RunFailure
from intonnx.ir.types import Array

_REALS = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.DOUBLE)


def is_installed() -> bool:
    """Whether onnxruntime can be imported."""
    return find_spec("onnxruntime") is not None


class Session:
    """A model loaded by onnxruntime on the CPU, executed sequentially and deterministically."""

    def __init__(
        self, model: onnx.ModelProto, *, optimized: bool = False, also: Iterable[str] = ()
    ) -> None:
        """Load a model.

        Args:
            model: with its external data loaded.
            optimized: whether onnxruntime may rewrite the graph.
            also: names of inner values that `run` returns beside the outputs.

        Raises:
            RunFailure: onnxruntime refuses the model.
        """
        import onnxruntime  # type: ignore[import-untyped]

        options = onnxruntime.SessionOptions()
        levels = onnxruntime.GraphOptimizationLevel
        options.graph_optimization_level = (
            levels.ORT_ENABLE_ALL if optimized else levels.ORT_DISABLE_ALL
        )
        options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
        options.use_deterministic_compute = True
        options.log_severity_level = 4
        try:
            data = _exposing(model, also).SerializeToString()
            self._session: Any = onnxruntime.InferenceSession(
                data, options, ["CPUExecutionProvider"]
            )
        except Exception as error:  # onnxruntime raises what C++ threw
            raise RunFailure(f"onnxruntime cannot load the model: {_one_line(error)}") from None
        self._outputs = [output.name for output in self._session.get_outputs()]

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """The outputs and exposed values that are tensors, by name. Raises RunFailure."""
        try:
            results = self._session.run(self._outputs, dict(inputs))
        except Exception as error:
            raise RunFailure(f"onnxruntime cannot run the model: {_one_line(error)}") from None
        found = zip(self._outputs, results, strict=True)
        return {name: array for name, array in found if isinstance(array, np.ndarray)}


def integer_share(model: onnx.ModelProto) -> tuple[int, int] | None:
    """How many operators onnxruntime runs on integers, of how many, with all its optimizations.

    Quantizers, casts and constants do not count. None when it does not load the model.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "optimized.onnx")
        options.optimized_model_filepath = str(path)
        try:
            data = model.SerializeToString()
            onnxruntime.InferenceSession(data, options, ["CPUExecutionProvider"])
        except Exception:  # onnxruntime raises what C++ threw
            return None
        nodes = onnx.load(path).graph
    reals = {v.name for v in nodes.input if v.type.tensor_type.elem_type in _REALS}
    counts = [0, 0]
    for node in nodes.node:
        if node.op_type in ("QuantizeLinear", "DynamicQuantizeLinear"):
            continue
        if node.op_type == "DequantizeLinear":
            reals.update(node.output)
        elif node.op_type not in ("Cast", "Constant", "Identity"):
            real = any(name in reals for name in node.input)
            counts[real] += 1
            reals.update(node.output if real else ())
    return counts[0], sum(counts)


def _exposing(model: onnx.ModelProto, also: Iterable[str]) -> onnx.ModelProto:
    outputs = {output.name for output in model.graph.output}
    made = {name for node in model.graph.node for name in node.output if name}
    extra = sorted((made & set(also)) - outputs)
    if not extra:
        return model
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    copy.graph.output.extend(onnx.ValueInfoProto(name=name) for name in extra)
    return copy


@functools.cache
def saturates() -> bool:
    """Whether onnxruntime's u8 x s8 kernels saturate on this CPU, as they do without VNNI.

    They then add two products in 16 bits, where 255 * 127 + 255 * 127 does not fit.
    """
    weights = numpy_helper.from_array(np.full((8, 8), 127, np.int8), "w")
    graph = helper.make_graph(
        [helper.make_node("MatMulInteger", ["x", "w"], ["y"])],
        "probe",
        [helper.make_tensor_value_info("x", TensorProto.UINT8, [1, 8])],
        [helper.make_tensor_value_info("y", TensorProto.INT32, [1, 8])],
        [weights],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    result = Session(model).run({"x": np.full((1, 8), 255, np.uint8)})
    return bool(np.any(result["y"] != 8 * 255 * 127))


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]
