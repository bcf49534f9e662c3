"""Element-wise functions of one tensor on every code."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import onnx

import intonnx
from support.models import Array
from support.wings import check_model


def every_code(dtype: npt.DTypeLike) -> Array:
    """All the codes of a type, in the order of their bits."""
    bits = np.dtype(dtype).itemsize * 8
    return np.arange(1 << bits).astype(f"u{bits // 8}").view(dtype)


def check(model: onnx.ModelProto, x: Array, quanta: int = 0) -> intonnx.Graph:
    """Hold a model of one input against onnxruntime through every wing, at most `quanta` apart."""
    return check_model(model, {"x": x}, quanta=quanta, literal_quanta=quanta)


def ops_of(graph: intonnx.Graph) -> list[str]:
    """The names of all the operators of a graph."""
    return [node.op.title for node in graph.nodes]
