"""What `run` says when its inputs do not fit."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper

import intonnx


@pytest.fixture(scope="module")
def executable() -> intonnx.Executable:
    graph = helper.make_graph(
        [helper.make_node("Add", ["a", "b"], ["y"])],
        "sum",
        [
            helper.make_tensor_value_info("a", TensorProto.FLOAT, ["N", 2]),
            helper.make_tensor_value_info("b", TensorProto.FLOAT, ["N", 2]),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 2])],
    )
    return intonnx.compile(
        intonnx.import_model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]))
    )


A = np.ones((3, 2), np.float32)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"a": A}, "the input 'b' is missing"),
        ({"a": A, "b": A, "c": A}, "no input 'c': the inputs are 'a', 'b'"),
        ({"a": A, "b": A.astype(np.float64)}, "the input 'b' is float64, not float32"),
        ({"a": A, "b": A[0]}, "the input 'b' has shape [2], not [N, 2]"),
        ({"a": A, "b": A[:, :1]}, "the input 'b' has shape [3, 1], not [N, 2]"),
        ({"a": A, "b": A[:2]}, "the input 'b' has shape [2, 2], not [N, 2]"),
    ],
)
def test_an_input_that_does_not_fit(
    executable: intonnx.Executable, inputs: dict[str, object], message: str
) -> None:
    with pytest.raises(intonnx.RunFailure) as caught:
        executable.run(inputs)  # type: ignore[arg-type]
    assert str(caught.value) == message


def test_the_callers_arrays_are_not_changed(executable: intonnx.Executable) -> None:
    a = A.copy()
    result = executable.run({"a": a, "b": a})["y"]
    result[:] = 7
    np.testing.assert_array_equal(a, A)


def test_unknown_numerics(executable: intonnx.Executable) -> None:
    with pytest.raises(intonnx.CompileFailure, match="qlinear, qdq"):
        intonnx.compile(executable.graph, numerics="fast")
