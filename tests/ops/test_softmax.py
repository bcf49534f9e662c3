"""qnn.softmax against onnxruntime and the plain models of its two arithmetics."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import intonnx
from intonnx.ir.ops.softmax import Softmax
from intonnx.ir.types import DType, QuantParams, TensorType, plain, quantized
from support import bigint_linear, bigint_pointwise, mlas, strategies
from support.models import (
    Array,
    Fed,
    Params,
    qdq_model,
    qoperator_model,
    run_inputs,
    s8,
    s16,
    u8,
    u16,
)
from support.runtime import run_onnxruntime
from support.wings import apart, check_model, refusal_of

RNG = np.random.default_rng(0)
SHAPES: list[tuple[tuple[int, ...], int | None]] = [
    ((3, 10), None),
    ((5,), 0),
    ((3, 1), 1),
    ((2, 7, 5), 1),
    ((2, 3, 4, 9), -1),
    ((2, 3, 4, 9), 1),
    ((2, 3, 4, 9), -4),
    ((3, 1000), 1),
]


def any_codes(dtype: npt.DTypeLike, shape: tuple[int, ...]) -> Array:
    info = np.iinfo(dtype)
    return RNG.integers(info.min, info.max + 1, shape).astype(dtype)


# -- constraints ----------------------------------------------------------------------------------


def params(storage: DType = DType.U8, *, channels: int | None = None) -> QuantParams:
    shape = () if channels is None else (channels,)
    return QuantParams(
        storage=storage,
        scale=np.full(shape, 0.5),
        zero_point=np.zeros(shape),
        axis=None if channels is None else 0,
    )


@pytest.mark.parametrize(
    ("constraint", "x", "axis", "out"),
    [
        ("C1", plain(DType.U8, (3, 4)), 1, params()),
        ("C1", quantized(params(channels=3), (3, 4)), 1, params()),
        ("C1", quantized(params(DType.I32), (3, 4)), 1, params()),
        ("C2", quantized(params(), (3, 4)), 2, params()),
        ("C2", quantized(params(), (3, 4)), -1, params()),
        ("C2", quantized(params(), None), 0, params()),
        ("C3", quantized(params(), (3, 4)), 1, params(channels=3)),
    ],
)
def test_softmax_refuses_c1_to_c3(
    constraint: str, x: TensorType, axis: int, out: QuantParams
) -> None:
    with pytest.raises(intonnx.TypeFailure, match=constraint):
        Softmax(axis=axis, out=out).infer([x])


# -- between dequantize and quantize --------------------------------------------------------------


@pytest.mark.parametrize("opset", [10, 12, 13, 21])
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
@pytest.mark.parametrize("make", [u8, s8])
def test_softmax_of_8_bits(make: Any, shape: tuple[int, ...], axis: int | None, opset: int) -> None:
    x, y = make(0.07, 31), make(1 / 256, -128 if make is s8 else 0)
    attrs = None if axis is None else {"axis": axis}
    model = qdq_model(
        "Softmax", [Fed("x", shape, x, quantized=True)], out=y, attrs=attrs, opset=opset
    )
    graph = check_model(model, {"x": any_codes(x.dtype, shape)})
    assert isinstance(graph.nodes[-1].op, Softmax)


@pytest.mark.parametrize(("shape", "axis"), SHAPES)
@pytest.mark.parametrize(
    ("x", "y"),
    [
        (u16(2e-4, 30000), u16(1 / 65536, 0)),
        (s16(2e-4, -9), u8(1 / 256, 0)),
        (u8(0.1, 3), s8(1 / 256, -128)),
    ],
)
def test_storages_without_a_kernel_are_literal(
    x: Params, y: Params, shape: tuple[int, ...], axis: int | None
) -> None:
    attrs = None if axis is None else {"axis": axis}
    model = qdq_model("Softmax", [Fed("x", shape, x, quantized=True)], out=y, attrs=attrs)
    check_model(model, {"x": any_codes(x.dtype, shape)}, quanta=0)


@pytest.mark.parametrize("opset", [12, 13])
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
@pytest.mark.parametrize(("x", "y"), [(u8(0.07, 31), u8(0.08, 255)), (s8(0.02, 0), s8(0.1, 127))])
def test_log_softmax(
    x: Params, y: Params, shape: tuple[int, ...], axis: int | None, opset: int
) -> None:
    attrs = None if axis is None else {"axis": axis}
    model = qdq_model(
        "LogSoftmax", [Fed("x", shape, x, quantized=True)], out=y, attrs=attrs, opset=opset
    )
    # The logarithm of the sum is the C library's, so one unit in the last place may differ.
    check_model(model, {"x": any_codes(x.dtype, shape)}, literal_quanta=1)


def test_a_float_input_is_quantized_first() -> None:
    model = qdq_model("Softmax", [Fed("x", (4, 10), s8(0.05, 3))], out=s8(1 / 256, -128))
    graph = check_model(model, run_inputs(model))
    assert [node.op.name for node in graph.nodes] == ["qnn.quantize", "qnn.softmax"]


@settings(max_examples=40)
@given(st.data())
def test_the_literal_arithmetic_is_that_of_the_plain_model(data: st.DataObject) -> None:
    x, y = data.draw(strategies.params()), data.draw(strategies.params())
    shape = (data.draw(st.integers(1, 3)), data.draw(st.integers(1, 40)))
    codes = data.draw(strategies.codes(x.dtype, shape))
    model = qdq_model("Softmax", [Fed("x", shape, x, quantized=True)], out=y)
    found = intonnx.compile(intonnx.import_model(model), numerics="qdq").run({"x": codes})["y"]
    real = bigint_linear.dequantize(codes, x.scale_array, x.zero_array)
    wanted = bigint_linear.quantize(mlas.softmax(real), y.scale_array, y.zero_array)
    np.testing.assert_array_equal(found, wanted)
    unoptimized = run_onnxruntime(model, {"x": codes}, optimized=False)
    np.testing.assert_array_equal(found, unoptimized["y"])


# -- QLinearSoftmax -------------------------------------------------------------------------------


@settings(max_examples=60)
@given(st.data())
def test_qlinear_softmax_is_onnxruntime_and_the_plain_model(data: st.DataObject) -> None:
    dtype = data.draw(strategies.storages())
    x, y = data.draw(strategies.params(dtype)), data.draw(strategies.params(dtype))
    if data.draw(st.booleans()):
        y = Params(dtype, data.draw(st.sampled_from([1 / 256, 1 / 255, 1 / 128])), y.zero_point)
    shape = data.draw(st.sampled_from([(4, 9), (2, 3, 5), (1, 7), (6,), (2, 2, 3, 2)]))
    axis, opset = (
        data.draw(st.integers(-len(shape), len(shape) - 1)),
        data.draw(st.sampled_from([12, 13])),
    )
    codes = data.draw(strategies.codes(dtype, shape))
    quantization = (x.scale_array, x.zero_array, y.scale_array, y.zero_array)
    model = qoperator_model(
        "QLinearSoftmax",
        [Fed("x", shape, dtype=dtype), *quantization],
        dtype,
        attrs={"axis": axis, "opset": opset},
    )
    graph = intonnx.import_model(model)
    found = intonnx.compile(graph).run({"x": codes})
    plain_model = bigint_pointwise.qlinear_softmax(codes, *quantization, axis=axis, opset=opset)
    np.testing.assert_array_equal(found["y"], plain_model)
    for written in (model, intonnx.to_onnx(graph)):
        apart(run_onnxruntime(written, {"x": codes}, optimized=False), found, 0)


@pytest.mark.parametrize("form", ["qlinear", "qdq"])
@pytest.mark.parametrize("runtime", ["onnxruntime", "standard"])
def test_how_a_softmax_is_written(form: Any, runtime: Any) -> None:
    model = qdq_model(
        "Softmax", [Fed("x", (3, 4, 5), u8(0.05, 9), quantized=True)], out=u8(1 / 256), opset=12
    )
    exported = intonnx.to_onnx(intonnx.import_model(model), form=form, runtime=runtime)
    names = [node.op_type for node in exported.graph.node if node.op_type != "Identity"]
    literal = ["DequantizeLinear", "Shape", "Flatten", "Softmax", "Reshape", "QuantizeLinear"]
    contrib = (form, runtime) == ("qlinear", "onnxruntime")
    assert names == (["QLinearSoftmax"] if contrib else literal)
    codes = {"x": any_codes(np.uint8, (3, 4, 5))}
    wanted = run_onnxruntime(model, codes, optimized=False)
    for optimized in (False, True):
        apart(run_onnxruntime(exported, codes, optimized=optimized), wanted, int(contrib))


def test_rows_in_several_blocks() -> None:
    x = Fed("x", (40, 1500), s8(0.05, 9), quantized=True)
    check_model(
        qdq_model("Softmax", [x], out=s8(1 / 256, -128)), {"x": any_codes(np.int8, x.shape)}
    )


def test_symbolic_and_empty_batches() -> None:
    model = qdq_model("Softmax", [Fed("x", ("n", 7), u8(0.05, 9), quantized=True)], out=u8(1 / 256))
    executable = intonnx.compile(intonnx.import_model(model))
    for batch in (0, 1, 5):
        codes = any_codes(np.uint8, (batch, 7))
        wanted = run_onnxruntime(model, {"x": codes}, optimized=False)
        apart(executable.run({"x": codes}), wanted, 1)


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
    assert refusal_of(qdq_model("Softmax", [x], out=y), "Softmax")[0] == code
