"""Normalizations that older exporters write as means, differences and a square root."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import intonnx
from support.models import Builder, Fed, Params, run_inputs, s8, u8
from support.wings import check_model

SHAPE = (2, 4, 6)
RNG = np.random.default_rng(0)


def steps(
    x: Params, y: Params, *, opset: int = 13, centred: bool = True, square: str = "Pow",
    quotient: str = "Div", scale: bool = True, bias: bool = True, axes: tuple[int, ...] = (-1,),
    reads_variance: bool = False,
) -> onnx.ModelProto:  # fmt: skip
    """DQ -> the steps -> Q."""
    build = Builder(opset)
    value = build.operand(Fed("x", SHAPE, x), 0)

    def mean(of: str) -> str:
        if opset < 18:
            return build.node("ReduceMean", [of], axes=list(axes), keepdims=1)
        return build.node("ReduceMean", [of, build.constant("axes" + of, np.array(axes, np.int64))])

    part = build.node("Sub", [value, mean(value)]) if centred else value
    two = build.constant("two", np.float32(2))
    squared = build.node("Pow", [part, two]) if square == "Pow" else build.node("Mul", [part] * 2)
    variance = mean(squared)
    total = build.node("Add", [variance, build.constant("epsilon", np.float32(1e-5))])
    root = build.node("Sqrt", [total])
    if quotient == "Div":
        result = build.node("Div", [part, root])
    elif quotient == "Reciprocal":
        result = build.node("Mul", [part, build.node("Reciprocal", [root])])
    else:
        one = build.constant("one", np.float32(1))
        result = build.node("Mul", [build.node("Div", [one, root]), part])
    sizes = SHAPE[-len(axes) :]
    if scale:
        weight = build.constant("weight", RNG.normal(1, 0.3, sizes).astype(np.float32))
        result = build.node("Mul", [weight, result])
    if bias:
        result = build.node("Add", [result, build.constant("bias", np.full(sizes, 0.3, "f4"))])
    build.output(build.dequantize(build.quantize(result, y), y))
    if reads_variance:
        build.output(variance, np.float32)
    return build.model()


@pytest.mark.parametrize("opset", [11, 13, 18])
@pytest.mark.parametrize("square", ["Pow", "Mul"])
@pytest.mark.parametrize("quotient", ["Div", "Reciprocal", "one over"])
@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("affine", [(True, True), (True, False), (False, False)])
def test_steps_are_one_normalization(
    opset: int, square: str, quotient: str, centred: bool, affine: tuple[bool, bool]
) -> None:
    scale, bias = affine
    model = steps(u8(0.05, 120), s8(0.03, 5), opset=opset, square=square, quotient=quotient,
                  centred=centred, scale=scale, bias=bias and centred)  # fmt: skip
    graph = check_model(model, run_inputs(model), literal_quanta=1)
    names = [node.op.name for node in graph.nodes]
    kind = "qnn.layer_norm" if centred else "qnn.rms_norm"
    assert names == ["qnn.quantize", kind, "qnn.dequantize"]
    assert intonnx.coverage(graph).float == 0


def test_several_axes_are_one_normalization() -> None:
    model = steps(u8(0.05, 120), u8(0.03, 128), axes=(-2, -1))
    graph = check_model(model, run_inputs(model), literal_quanta=1)
    assert "qnn.layer_norm" in {node.op.name for node in graph.nodes}


def test_axes_that_are_not_the_last_stay_steps() -> None:
    model = steps(u8(0.05, 120), u8(0.03, 128), axes=(1,), scale=False, bias=False)
    graph = intonnx.import_model(model)
    assert "qnn.layer_norm" not in {node.op.name for node in graph.nodes}


def test_a_variance_that_something_reads_is_still_computed() -> None:
    model = steps(u8(0.05, 120), u8(0.03, 128), reads_variance=True)
    graph = intonnx.import_model(model)
    names = {node.op.title for node in graph.nodes}
    assert {"qnn.layer_norm", "onnx.ReduceMean"} <= names
