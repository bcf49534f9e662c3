"""The backend by hand: nodes, devices, inputs by name and by place."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from intonnx.backend import IntonnxBackend
from intonnx.ir.errors import CompileFailure, RunFailure


def model(overridable: bool = False) -> onnx.ModelProto:
    """y = x - c, where c may be an input with a default."""
    values = {n: helper.make_tensor_value_info(n, TensorProto.FLOAT, [2]) for n in "xcy"}
    inputs = [values["c"], values["x"]] if overridable else [values["x"]]
    constant = numpy_helper.from_array(np.array([1, 2], np.float32), "c")
    node = helper.make_node("Sub", ["x", "c"], ["y"])
    body = helper.make_graph([node], "g", inputs, [values["y"]], [constant])
    return helper.make_model(body, opset_imports=[helper.make_opsetid("", 17)])


X = np.array([5, 5], np.float32)


def test_inputs_with_a_default_may_be_left_out() -> None:
    prepared = IntonnxBackend.prepare(model(overridable=True))
    np.testing.assert_array_equal(prepared.run([X])[0], [4, 3])
    np.testing.assert_array_equal(prepared.run([X - 5, X])[0], [5, 5])
    np.testing.assert_array_equal(prepared.run({"x": X})[0], [4, 3])
    with pytest.raises(RunFailure, match="3 inputs for 2"):
        prepared.run([X, X, X])
    with pytest.raises(RunFailure, match="0 inputs for 2"):
        prepared.run([])


def test_a_node_alone() -> None:
    node = helper.make_node("Mul", ["a", "b"], ["c"])
    (found,) = IntonnxBackend.run_node(node, [X, X])
    np.testing.assert_array_equal(found, [25, 25])
    squeeze = helper.make_node("Squeeze", ["a"], ["c"], axes=[0])
    (found,) = IntonnxBackend.run_node(squeeze, [X[None]], opset_version=11)
    np.testing.assert_array_equal(found, X)


def test_devices_and_numerics() -> None:
    assert IntonnxBackend.supports_device("CPU")
    assert IntonnxBackend.is_compatible(model())
    assert not IntonnxBackend.supports_device("CUDA:0")
    with pytest.raises(ValueError, match="no device 'CUDA'"):
        IntonnxBackend.prepare(model(), "CUDA")
    assert IntonnxBackend.prepare(model(), numerics="qdq").executable.numerics == "qdq"
    with pytest.raises(CompileFailure, match="no numerics"):
        IntonnxBackend.prepare(model(), numerics="float")
