"""qnn.local_response_norm against onnxruntime and the plain float64 model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import intonnx
from intonnx.ir.op import Op
from intonnx.ir.ops.lrn import LocalResponseNorm
from intonnx.ir.types import DType, plain
from support import strategies
from support.models import MICROSOFT, Array, Fed, Params, qdq_model, run_inputs, s8, u8
from support.movers import kind, names_of
from support.normalizations import FULL_RANGE, codes_of, real
from support.wings import apart, check_model, refusal_of

OUT = kind((2,)).params
PER_AXIS = kind((3,), axis=0, n=3).params


def model(x: Fed, out: Params | None, *, opset: int = 21, **attributes: Any) -> Any:
    domain = "" if opset >= 21 else MICROSOFT
    return qdq_model("LRN", [x], out=out, attrs=attributes, opset=opset, qdq_domain=domain)


def plain_lrn(x: Array, size: int, alpha: float, beta: float, bias: float) -> Array:
    """The formula of ONNX, channel by channel."""
    result = np.empty_like(x)
    for c in range(x.shape[1]):
        first, last = c - (size - 1) // 2, c + -(-(size - 1) // 2)
        near = x[:, max(0, first) : min(x.shape[1] - 1, last) + 1]
        result[:, c] = x[:, c] / (bias + alpha / size * np.square(near).sum(1)) ** beta
    return result


@pytest.mark.parametrize(
    ("constraint", "op", "x"),
    [
        ("C1", LocalResponseNorm(size=3, out=OUT), plain(DType.U8, (3, 4))),
        ("C1", LocalResponseNorm(size=3, out=OUT), kind((3, 4), axis=0, n=3)),
        ("C1", LocalResponseNorm(size=3, out=OUT), kind((3,))),
        ("C2", LocalResponseNorm(size=0, out=OUT), kind((3, 4))),
        ("C3", LocalResponseNorm(size=3, out=PER_AXIS), kind((3, 4))),
    ],
)
def test_lrn_refuses_c1_to_c3(constraint: str, op: Op, x: Any) -> None:
    with pytest.raises(intonnx.TypeFailure, match=constraint):
        op.infer([x])


@pytest.mark.parametrize("opset", [10, 13, 21])
@pytest.mark.parametrize(("x", "y"), FULL_RANGE)
def test_lrn(x: Params, y: Params, opset: int) -> None:
    for attributes, quantized in (
        ({"size": 5}, True),
        ({"size": 3, "alpha": 0.3, "beta": 0.5, "bias": 2.0}, False),
        ({"size": 1, "alpha": 0.1}, True),
        ({"size": 15, "alpha": 0.1}, True),
    ):
        shape = (2, 7, 3, 5)
        given_model = model(Fed("x", shape, x, quantized=quantized), y, opset=opset, **attributes)
        graph = check_model(given_model, run_inputs(given_model), literal_quanta=1, export_quanta=1)
        assert names_of(graph) == ["qnn.local_response_norm"]


@settings(max_examples=40)
@given(st.data())
def test_codes_are_those_of_float64(data: st.DataObject) -> None:
    # Even sizes too, which onnxruntime has not.
    x, y = data.draw(strategies.params(wide=True)), data.draw(strategies.params(wide=True))
    shape = (2, data.draw(st.integers(1, 6)), 3)
    size = data.draw(st.integers(1, 8))
    codes = data.draw(strategies.codes(x.dtype, shape))
    given_model = model(
        Fed("x", shape, x, quantized=True), y, size=size, alpha=0.25, beta=0.75, bias=1.0
    )
    found = intonnx.compile(intonnx.import_model(given_model)).run({"x": codes})["y"]
    apart({"y": found}, {"y": codes_of(plain_lrn(real(codes, x), size, 0.25, 0.75, 1.0), y)}, 1)


def test_symbolic_batches_and_text() -> None:
    x = Fed("x", ("n", 4, 8), u8(0.2, 114), quantized=True)
    graph = intonnx.import_model(model(x, s8(0.2, 3), size=3, alpha=0.2))
    assert intonnx.parse(str(graph), weights=graph.constants) == graph
    executable = intonnx.compile(graph)
    codes = np.random.default_rng(0).integers(0, 256, (5, 4, 8)).astype(np.uint8)
    whole = executable.run({"x": codes})["y"]
    for item in range(5):
        single = executable.run({"x": codes[item : item + 1]})["y"]
        np.testing.assert_array_equal(single, whole[item : item + 1])
    assert executable.run({"x": codes[:0]})["y"].shape == (0, 4, 8)


@pytest.mark.parametrize(
    ("x", "y", "code"),
    [
        (Fed("x", (3, 4, 5, 6)), u8(0.1), "input-not-quantized"),
        (Fed("x", (3, 4, 5, 6), u8(0.1)), None, "output-not-quantized"),
        (Fed("x", (3, 4, 5, 6), u8([0.1] * 3, [0] * 3, axis=0)), u8(0.1), "per-axis-input"),
        (Fed("x", (3, 4, 5, 6), u8(0.1)), u8([0.1] * 3, [0] * 3, axis=0), "unsupported-attribute"),
    ],
)
def test_refusals(x: Fed, y: Params | None, code: str) -> None:
    assert refusal_of(model(x, y, size=3), "LRN")[0] == code
