"""Reductions against onnxruntime and sums of Python integers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import intonnx
from intonnx.ir.op import Op
from intonnx.ir.ops.reduce import Mean, ReduceMax, ReduceMin, Sum
from intonnx.ir.types import DType, TensorType, plain
from support import bigint_linear, strategies
from support.models import (
    MICROSOFT,
    Builder,
    Fed,
    Held,
    Params,
    qdq_model,
    qoperator_model,
    run_inputs,
    s8,
    s16,
    u8,
    u16,
)
from support.movers import codes_model, kind, names_of, shape_of
from support.runtime import run_onnxruntime
from support.wings import apart, check_model, refusal_of

SHAPE = (2, 3, 4, 5)
OPERATORS = ["ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin"]
OUT = kind((2,)).params


def model(
    op_type: str,
    x: Fed,
    out: Params | None,
    axes: Any = None,
    *,
    opset: int = 21,
    **attributes: Any,
) -> Any:
    """DQ -> reduction -> Q with the axes where this opset has them."""
    inputs: list[Any] = [x]
    if axes is not None and opset >= (13 if op_type == "ReduceSum" else 18):
        inputs.append(Held(np.asarray(axes, np.int64)))
    elif axes is not None:
        attributes["axes"] = axes
    domain = "" if opset >= 21 else MICROSOFT
    return qdq_model(op_type, inputs, out=out, attrs=attributes, opset=opset, qdq_domain=domain)


def result_params(op_type: str, x: Params) -> Params:
    scale = {"ReduceMean": 0.7, "ReduceSum": 9.0}.get(op_type, 1.0)
    return Params(x.dtype, scale * x.scale, x.zero_point)


# -- constraints ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("constraint", "op", "x"),
    [
        ("C1", Sum(axes=(0,)), plain(DType.U8, (3, 4))),
        ("C1", Sum(axes=(0,)), kind((3, 4), axis=1, n=4)),
        ("C1", Mean(axes=(0,), out=OUT), kind((3, 4), axis=1, n=4)),
        ("C1", ReduceMax(axes=(1,)), kind((3, 4), axis=1, n=4)),
        ("C1", ReduceMin(axes=(0,)), plain(DType.F32, (3, 4))),
        ("C2", Sum(axes=(2,)), kind((3, 4))),
        ("C2", Sum(axes=(0, -2)), kind((3, 4))),
        ("C2", Mean(axes=(0,), out=OUT), kind(None)),
        ("C2", ReduceMax(axes=()), kind((3, 4))),
        ("C3", Mean(axes=(0,), out=kind((3,), axis=0, n=3).params), kind((3, 4))),
    ],
)
def test_reductions_refuse_c1_to_c3(constraint: str, op: Op, x: TensorType) -> None:
    with pytest.raises(intonnx.TypeFailure, match=constraint):
        op.infer([x])


def test_shapes_and_parameters() -> None:
    assert shape_of(Sum(axes=(-1, 0)), kind((3, "n", 4))) == (1, "n", 1)
    assert shape_of(Sum(axes=(-1, 0), keepdims=False), kind((3, "n", 4))) == ("n",)
    found = ReduceMax(axes=(0,), keepdims=False).infer([kind((3, 4), axis=1, n=4)])[0]
    assert (found.shape, found.params.axis) == ((4,), 0)
    assert ReduceMin(axes=(0,)).infer([plain(DType.I8, (3, 4))]) == (plain(DType.I8, (1, 4)),)


# -- against onnxruntime --------------------------------------------------------------------------


@pytest.mark.parametrize("op_type", OPERATORS)
@pytest.mark.parametrize("opset", [10, 13, 17, 18, 23])
@pytest.mark.parametrize("axes", [None, [1], [-1, 2]])
@pytest.mark.parametrize("x", [u8(0.02, 114), s8(0.02, -9)])
def test_axes_and_keepdims_at_every_opset(x: Params, axes: Any, opset: int, op_type: str) -> None:
    exact = op_type in ("ReduceMax", "ReduceMin")
    for keepdims, quantized in ((0, True), (1, False)):
        given_model = model(
            op_type,
            Fed("x", SHAPE, x, quantized=quantized),
            result_params(op_type, x),
            axes,
            opset=opset,
            keepdims=keepdims,
        )
        graph = check_model(
            given_model,
            run_inputs(given_model),
            quanta=0 if exact else 1,
            literal_quanta=0 if exact else 1,
        )
        assert graph.types["y"].rank == (4 if keepdims else 4 - len(axes or SHAPE))


@pytest.mark.parametrize("op_type", OPERATORS)
@pytest.mark.parametrize(
    ("x", "y"),
    [
        (u16(2e-4, 30000), u16(1.5e-4, 32768)),
        (s16(2e-4, -9), s16(3e-3, 100)),
        (u8(0.1, 3), s8(0.09, -128)),
        (s8(0.1, 127), u8(0.3, 255)),
    ],
)
def test_16_bits_and_other_result_types(x: Params, y: Params, op_type: str) -> None:
    given_model = model(op_type, Fed("x", SHAPE, x, quantized=True), y, [1, 3])
    exact = op_type in ("ReduceMax", "ReduceMin")
    check_model(
        given_model, run_inputs(given_model), quanta=not exact, literal_quanta=int(not exact)
    )


@settings(max_examples=40)
@given(st.data())
def test_means_are_those_of_python_integers(data: st.DataObject) -> None:
    x, y = data.draw(strategies.params(wide=True)), data.draw(strategies.params(wide=True))
    shape = (data.draw(st.integers(1, 3)), data.draw(st.integers(1, 30)))
    codes = data.draw(strategies.codes(x.dtype, shape))
    found = intonnx.compile(
        intonnx.import_model(model("ReduceMean", Fed("x", shape, x, quantized=True), y, [1]))
    ).run({"x": codes})["y"]
    sums = [[sum(int(code) - int(x.zero_array) for code in row)] for row in codes]
    k = np.float32(float(x.scale_array) / (float(y.scale_array) * shape[1]))
    wanted = bigint_linear.requantize(np.asarray(sums), k, y.zero_array)
    np.testing.assert_array_equal(found, wanted)


@settings(max_examples=40)
@given(st.data())
def test_sums_are_those_of_python_integers(data: st.DataObject) -> None:
    x, y = data.draw(strategies.params(wide=True)), data.draw(strategies.params(wide=True))
    shape = (data.draw(st.integers(1, 30)), data.draw(st.integers(1, 3)))
    codes = data.draw(strategies.codes(x.dtype, shape))
    found = intonnx.compile(
        intonnx.import_model(model("ReduceSum", Fed("x", shape, x, quantized=True), y, [0]))
    ).run({"x": codes})["y"]
    sums = [[sum(int(code) - int(x.zero_array) for code in column) for column in codes.T]]
    k = np.float32(x.scale_array / y.scale_array)
    np.testing.assert_array_equal(
        found, bigint_linear.requantize(np.asarray(sums), k, y.zero_array)
    )


def test_sums_beyond_32_bits() -> None:
    x = Fed("x", (2, 70000), u16(1e-5, 0), quantized=True)
    given_model = model("ReduceSum", x, u8(0.2, 0), [1])
    graph = check_model(
        given_model,
        {"x": np.full((2, 70000), 65535, np.uint16)},
        literal_quanta=1,
        export_quanta=1,
    )
    assert names_of(graph) == ["qnn.sum", "qnn.requantize"]


def test_a_sum_without_a_quantizer_is_an_accumulator() -> None:
    given_model = model("ReduceSum", Fed("x", SHAPE, u8(0.25, 114), quantized=True), None, [2])
    graph = check_model(given_model, run_inputs(given_model))
    assert names_of(graph) == ["qnn.sum"]
    assert graph.types["y"].dtype is DType.F32


@pytest.mark.parametrize("op_type", OPERATORS)
def test_no_axes_and_noop_reduce_nothing(op_type: str) -> None:
    x = Fed("x", (3, 4), u8(0.25, 114), quantized=True)
    noop = model(op_type, x, u8(0.25, 114), [], noop_with_empty_axes=1)
    (name,) = names_of(check_model(noop, run_inputs(noop), quanta=0))
    assert name in ("qnn.identity", "qnn.requantize")
    everything = model(op_type, x, u8(0.25, 114), [], noop_with_empty_axes=0, keepdims=0)
    assert check_model(everything, run_inputs(everything), literal_quanta=1).types["y"].shape == ()


def test_an_empty_attribute_reduces_all() -> None:
    x = Fed("x", (3, 4), u8(0.25, 114), quantized=True)
    given_model = model("ReduceMean", x, u8(0.25, 114), opset=13, keepdims=0)
    (node,) = (node for node in given_model.graph.node if node.op_type == "ReduceMean")
    node.attribute.add(name="axes", type=7)
    assert (
        check_model(given_model, run_inputs(given_model), literal_quanta=1).types["y"].shape == ()
    )


@pytest.mark.parametrize("op_type", OPERATORS)
def test_symbolic_and_empty_batches(op_type: str) -> None:
    x = Fed("x", ("n", 7), s8(0.05, 9), quantized=True)
    literal = model(op_type, x, s8(0.1, 3), [1])
    executable = intonnx.compile(intonnx.import_model(literal))
    summed = intonnx.import_model(model(op_type, x, s8(0.1, 3), [0]))
    for batch in (0, 1, 5):
        codes = np.random.default_rng(batch).integers(-128, 128, (batch, 7)).astype(np.int8)
        wanted = run_onnxruntime(literal, {"x": codes}, optimized=False)
        apart(executable.run({"x": codes}), wanted, 1)
        if batch:
            found = intonnx.compile(summed).run({"x": codes})
            apart(run_onnxruntime(intonnx.to_onnx(summed), {"x": codes}, optimized=False), found, 1)


@pytest.mark.parametrize("op_type", ["ReduceMax", "ReduceMin"])
def test_extremes_of_codes_and_per_axis(op_type: str) -> None:
    axes = np.asarray([1])
    on_codes = codes_model(op_type, (2, 3, 4), u8(0.1, 3), u8(0.1, 3), [axes])
    assert names_of(check_model(on_codes, run_inputs(on_codes), quanta=0)) == [
        f"qnn.reduce_{op_type[-3:].lower()}"
    ]
    per_axis = u8([0.1, 0.2, 0.3], [0, 128, 255], axis=1)
    x = Fed("x", (2, 3, 4), per_axis, quantized=True)
    kept = model(op_type, x, u8(0.1, 7), [2])
    check_model(kept, run_inputs(kept), quanta=0)
    assert refusal_of(model(op_type, x, None, [1]), op_type)[0] == "per-axis-input"


def test_an_extreme_before_the_quantizer_moves_to_codes() -> None:
    build = Builder()
    shifted = build.node("Cos", [build.feed("x", (3, 4), np.float32)])
    top = build.node("ReduceMax", [shifted, build.constant("axes", np.asarray([1]))])
    build.output(build.quantize(top, s8(0.01, 5), "y"), np.int8)
    given_model = build.model()
    graph = check_model(given_model, run_inputs(given_model), quanta=1, literal_quanta=1, floats=1)
    assert names_of(graph) == ["onnx.Cos", "qnn.reduce_max"]


@pytest.mark.parametrize("make", [u8, s8])
def test_qlinear_reduce_mean(make: Any) -> None:
    x, y = make(0.05, 9), make(0.04, 3)
    node = qoperator_model(
        "QLinearReduceMean",
        [Fed("x", SHAPE, dtype=x.dtype), x.scale_array, x.zero_array, y.scale_array, y.zero_array],
        x.dtype,
        attrs={"axes": [2, -1], "keepdims": 0},
        infer=False,
    )
    node.graph.output[0].type.tensor_type.shape.dim.add(dim_value=2)
    node.graph.output[0].type.tensor_type.shape.dim.add(dim_value=3)
    literal = model("ReduceMean", Fed("x", SHAPE, x, quantized=True), y, [2, 3], keepdims=0)
    feeds = run_inputs(literal)
    found = intonnx.compile(intonnx.import_model(node)).run(feeds)
    apart(found, run_onnxruntime(literal, feeds, optimized=False), 1)


@pytest.mark.parametrize(("op_type", "shape"), [("ReduceMean", SHAPE), ("ReduceMax", SHAPE)])
def test_how_a_reduction_is_written(op_type: str, shape: Any) -> None:
    given_model = model(op_type, Fed("x", shape, u8(0.1, 3), quantized=True), u8(0.1, 3), [1])
    graph = intonnx.import_model(given_model)
    exported = [node.op_type for node in intonnx.to_onnx(graph).graph.node]
    integer = ["Cast", "Sub", "ReduceSum", "Cast", "Mul", "QuantizeLinear"]
    assert exported == (integer if op_type == "ReduceMean" else ["ReduceMax"])
    literal = [node.op_type for node in intonnx.to_onnx(graph, form="qdq").graph.node]
    assert literal == ["DequantizeLinear", op_type, "QuantizeLinear"]


# -- what stays float -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("x", "y", "code"),
    [
        (Fed("x", (3, 4)), u8(0.1), "input-not-quantized"),
        (Fed("x", (3, 4), u8(0.1)), None, "output-not-quantized"),
        (Fed("x", (3, 4), u8([0.1] * 3, [0] * 3, axis=0)), u8(0.1), "per-axis-input"),
        (Fed("x", (3, 4), u8(0.1)), u8([0.1] * 3, [0] * 3, axis=0), "unsupported-attribute"),
    ],
)
def test_refusals(x: Fed, y: Params | None, code: str) -> None:
    assert refusal_of(model("ReduceMean", x, y, [1]), "ReduceMean")[0] == code


@pytest.mark.parametrize("op_type", OPERATORS)
def test_axes_computed_at_run_time_are_refused(op_type: str) -> None:
    inputs = [Fed("x", (3, 4), u8(0.1), quantized=True), Fed("axes", (1,), dtype=np.int64)]
    code, detail = refusal_of(qdq_model(op_type, inputs, out=u8(0.1)), op_type)
    assert code == "runtime-constant"
    assert "'axes'" in detail


def test_text_form_and_channels_last_memory() -> None:
    given_model = model("ReduceMean", Fed("x", SHAPE, u8(0.1, 3), quantized=True), u8(0.1), [2, 3])
    graph = intonnx.import_model(given_model)
    assert intonnx.parse(str(graph), weights=graph.constants) == graph
    codes = run_inputs(given_model)["x"]
    last = np.ascontiguousarray(codes.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
    executable = intonnx.compile(graph)
    apart(executable.run({"x": last}), executable.run({"x": codes}), 0)
