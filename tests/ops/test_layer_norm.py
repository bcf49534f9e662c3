"""qnn.layer_norm and qnn.rms_norm against onnxruntime and the plain float64 model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import intonnx
from intonnx.ir.op import Op
from intonnx.ir.ops.layer_norm import LayerNorm, RmsNorm
from intonnx.ir.types import DType, TensorType, plain
from support import strategies
from support.models import MICROSOFT, Fed, Held, Params, qdq_model, run_inputs, s8, u8
from support.movers import kind, names_of
from support.normalizations import (
    FULL_RANGE,
    codes_of,
    factors,
    nearly_constant,
    normalized,
    real,
)
from support.wings import apart, check_model, refusal_of

SHAPE = (2, 4, 3, 5)
OUT = kind((2,)).params
PER_AXIS = kind((3,), axis=0, n=3).params
NAMES = {"LayerNormalization": "qnn.layer_norm", "RMSNormalization": "qnn.rms_norm"}


def floats(*shape: int) -> TensorType:
    return plain(DType.F32, shape)


def model(
    op_type: str, x: Fed, out: Params | None, others: Any, *, opset: int = 23, **attributes: Any
) -> Any:
    domain = "" if opset >= 21 else MICROSOFT
    inputs = [x, *(Held(other) for other in others)]
    return qdq_model(op_type, inputs, out=out, attrs=attributes, opset=opset, qdq_domain=domain)


# -- constraints ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("constraint", "op", "operands"),
    [
        ("C1", LayerNorm(out=OUT), [plain(DType.U8, (3, 4)), floats(4)]),
        ("C1", RmsNorm(out=OUT), [kind((3, 4), axis=0, n=3), floats(4)]),
        ("C2", LayerNorm(axis=2, out=OUT), [kind((3, 4)), floats(4)]),
        ("C2", RmsNorm(out=OUT), [kind(None), floats(4)]),
        ("C3", LayerNorm(out=PER_AXIS), [kind((3, 4)), floats(4)]),
        ("C4", LayerNorm(out=OUT), [kind((3, 4)), floats(3)]),
        ("C4", LayerNorm(out=OUT), [kind((3, 4)), floats(4), floats(2, 3, 4)]),
        ("C4", RmsNorm(out=OUT), [kind((3, 4)), kind((4,))]),
    ],
)
def test_last_axes_refuse_c1_to_c4(constraint: str, op: Op, operands: Any) -> None:
    with pytest.raises(intonnx.TypeFailure, match=constraint):
        op.infer(operands)


# -- against onnxruntime --------------------------------------------------------------------------


@pytest.mark.parametrize("opset", [17, 18, 21, 23])
@pytest.mark.parametrize(("x", "y"), FULL_RANGE)
def test_layer_norm(x: Params, y: Params, opset: int) -> None:
    scale, bias = factors(5)
    for others, quantized, attributes in (
        ([scale, bias], True, {}),
        ([scale], False, {"axis": -1, "epsilon": 0.5}),
        ([factors(3, 5)[0], factors(3, 5)[1]], True, {"axis": 2}),
        ([scale], True, {"axis": 0}),
    ):
        given_model = model(
            "LayerNormalization", Fed("x", SHAPE, x, quantized=quantized), y, others,
            opset=opset, **attributes,
        )  # fmt: skip
        graph = check_model(given_model, run_inputs(given_model), literal_quanta=1, export_quanta=1)
        assert names_of(graph) == ["qnn.layer_norm"]


@pytest.mark.parametrize(("x", "y"), FULL_RANGE)
def test_rms_norm(x: Params, y: Params) -> None:
    for shape, axis, quantized in (((5,), -1, True), ((4, 3, 5), 1, False)):
        given_model = model(
            "RMSNormalization", Fed("x", SHAPE, x, quantized=quantized), y, factors(*shape)[:1],
            axis=axis,
        )  # fmt: skip
        graph = check_model(given_model, run_inputs(given_model), literal_quanta=1, export_quanta=1)
        assert names_of(graph) == ["qnn.rms_norm"]


def test_a_scale_and_a_bias_given_as_codes() -> None:
    scale = Held(np.asarray([100, 120, 90, 80, 127]), s8(0.01, 0))
    bias = Held(np.asarray([1, -2, 3, -4, 5]), s8(0.1, 0))
    x = Fed("x", SHAPE, u8(0.02, 114), quantized=True)
    given_model = qdq_model("LayerNormalization", [x, scale, bias], out=u8(0.03, 128))
    graph = check_model(given_model, run_inputs(given_model), literal_quanta=1, export_quanta=1)
    assert intonnx.parse(str(graph), weights=graph.constants) == graph


# -- against float64 ------------------------------------------------------------------------------


@settings(max_examples=40)
@given(st.data())
def test_codes_are_those_of_float64(data: st.DataObject) -> None:
    x, y = data.draw(strategies.params(wide=True)), data.draw(strategies.params(wide=True))
    op_type = data.draw(st.sampled_from(list(NAMES)))
    shape = (data.draw(st.integers(1, 3)), data.draw(st.integers(1, 40)))
    codes = data.draw(strategies.codes(x.dtype, shape))
    scale, bias = factors(shape[1])
    centred = op_type == "LayerNormalization"
    others = [scale, bias] if centred else [scale]
    given_model = model(op_type, Fed("x", shape, x, quantized=True), y, others)
    found = intonnx.compile(intonnx.import_model(given_model)).run({"x": codes})["y"]
    epsilon = float(np.float32(1e-5))
    wanted = normalized(real(codes, x), (1,), epsilon, mean=centred) * scale
    apart({"y": found}, {"y": codes_of(wanted + bias if centred else wanted, y)}, 1)


@pytest.mark.parametrize("dtype", [np.uint8, np.int16])
def test_a_small_variance_is_not_lost(dtype: Any) -> None:
    # 767 codes at the end of the range and one next to it, at -27.6 standard deviations.
    x, y = Params(dtype, 1.0, 0), s8(0.25, 0)
    given_model = model("LayerNormalization", Fed("x", (2, 768), x, quantized=True), y,
                        [np.ones(768, np.float32)])  # fmt: skip
    codes = nearly_constant(dtype, (2, 768))
    found = intonnx.compile(intonnx.import_model(given_model)).run({"x": codes})["y"]
    np.testing.assert_array_equal(found, codes_of(normalized(real(codes, x), (1,), 1e-5), y))
    assert found[0, 0] == -110


def test_a_row_does_not_depend_on_its_batch() -> None:
    x = Fed("x", ("n", 7, 64), u8(0.02, 114), quantized=True)
    given_model = model("LayerNormalization", x, s8(0.02, 3), factors(64))
    executable = intonnx.compile(intonnx.import_model(given_model))
    codes = np.random.default_rng(0).integers(0, 256, (9, 7, 64)).astype(np.uint8)
    whole = executable.run({"x": codes})["y"]
    for row in range(9):
        single = executable.run({"x": codes[row : row + 1]})["y"]
        np.testing.assert_array_equal(single, whole[row : row + 1])
    assert executable.run({"x": codes[:0]})["y"].shape == (0, 7, 64)


# -- what stays float -----------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["qlinear", "qdq"])
@pytest.mark.parametrize("op_type", NAMES)
def test_how_it_is_written(op_type: str, form: Any) -> None:
    x = Fed("x", SHAPE, u8(0.02, 114), quantized=True)
    graph = intonnx.import_model(model(op_type, x, s8(0.02, 3), factors(5)[:1]))
    written = [node.op_type for node in intonnx.to_onnx(graph, form=form).graph.node]
    assert written == ["DequantizeLinear", op_type, "QuantizeLinear"]


@pytest.mark.parametrize(
    ("x", "y", "code"),
    [
        (Fed("x", (3, 5)), u8(0.1), "input-not-quantized"),
        (Fed("x", (3, 5), u8(0.1)), None, "output-not-quantized"),
        (Fed("x", (3, 5), u8([0.1] * 3, [0] * 3, axis=0)), u8(0.1), "per-axis-input"),
        (Fed("x", (3, 5), u8(0.1)), u8([0.1] * 3, [0] * 3, axis=0), "unsupported-attribute"),
    ],
)
def test_refusals(x: Fed, y: Params | None, code: str) -> None:
    found = refusal_of(model("LayerNormalization", x, y, factors(5)), "LayerNormalization")
    assert found[0] == code


def test_a_scale_computed_at_run_time_is_refused() -> None:
    inputs = [Fed("x", (3, 5), u8(0.1), quantized=True), Fed("scale", (5,))]
    given_model = qdq_model("LayerNormalization", inputs, out=u8(0.1))
    assert refusal_of(given_model, "LayerNormalization") == (
        "runtime-constant",
        "the scale 'scale' is computed at run time: make it a constant",
    )


def test_statistics_that_are_read_are_refused() -> None:
    inputs = [Fed("x", (3, 5), u8(0.1), quantized=True), Held(factors(5)[0])]
    given_model = qdq_model("LayerNormalization", inputs, out=u8(0.1), results=2)
    code, detail = refusal_of(given_model, "LayerNormalization")
    assert code == "unsupported-attribute"
    assert "'f_1'" in detail
