"""Which operand QLinearAdd takes for the scalar: its last bit depends on the order."""

from __future__ import annotations

import numpy as np
import pytest

import intonnx
from intonnx.lowering.binary import swaps_operands
from support.bigint_pointwise import innermost_is_scalar
from support.models import Fed, qdq_model, s8
from support.runtime import run_onnxruntime

SHAPES = [(), (1,), (8,), (1, 1), (8, 1), (1, 8), (4, 8), (4, 8, 1), (4, 1, 8), (1, 4, 1, 1),
          (1, 1, 1, 1), (2, 4, 1, 8), (1, 1, 8, 1), (2, 1, 1, 1)]  # fmt: skip


def _broadcast(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    try:
        np.broadcast_shapes(a, b)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("a", SHAPES, ids=str)
def test_which_operand_is_the_scalar(a: tuple[int, ...]) -> None:
    """These two codes give another sum when the operands change places: onnxruntime tells which."""
    for b in (shape for shape in SHAPES if _broadcast(a, shape)):
        sides = [Fed("a", a, s8(0.408083081245422, -14), quantized=True),
                 Fed("b", b, s8(0.011764706112444401, -128), quantized=True)]  # fmt: skip
        model = qdq_model("Add", sides, out=s8(0.02352941222488880, -128))
        graph = intonnx.import_model(model)
        inputs = {"a": np.full(a, -14, np.int8), "b": np.full(b, 127, np.int8)}
        exported = intonnx.to_onnx(graph, cpu="arm")
        found = run_onnxruntime(exported, inputs, optimized=False)["y"]
        np.testing.assert_array_equal(intonnx.compile(graph).run(inputs)["y"], found)
        assert swaps_operands(a, b) == innermost_is_scalar(a, b)
