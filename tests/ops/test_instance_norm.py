"""qnn.instance_norm and qnn.group_norm against onnxruntime and the plain float64 model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import intonnx
from intonnx.ir.op import Op
from intonnx.ir.ops.instance_norm import GroupNorm, InstanceNorm
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


def floats(*shape: int) -> TensorType:
    return plain(DType.F32, shape)


def model(
    x: Fed, out: Params | None, *, groups: int = 0, opset: int = 21, **attributes: Any
) -> Any:
    """InstanceNormalization, or GroupNormalization with `groups`."""
    op_type = "GroupNormalization" if groups else "InstanceNormalization"
    if groups:
        attributes["num_groups"] = groups
    scale, bias = factors(int(x.shape[1] or 0))
    domain = "" if opset >= 21 else MICROSOFT
    inputs = [x, Held(scale), Held(bias)]
    return qdq_model(op_type, inputs, out=out, attrs=attributes, opset=opset, qdq_domain=domain)


# -- constraints ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("constraint", "op", "operands"),
    [
        ("C1", InstanceNorm(out=OUT), [plain(DType.U8, (2, 3, 4)), floats(3), floats(3)]),
        ("C1", GroupNorm(groups=1, out=OUT), [kind((2, 3), axis=1, n=3), floats(3), floats(3)]),
        ("C2", InstanceNorm(out=OUT), [kind((3,)), floats(3), floats(3)]),
        ("C2", GroupNorm(groups=2, out=OUT), [kind((2, 3, 4)), floats(3), floats(3)]),
        ("C2", GroupNorm(groups=0, out=OUT), [kind((2, 3, 4)), floats(3), floats(3)]),
        ("C3", InstanceNorm(out=PER_AXIS), [kind((3, 3, 4)), floats(3), floats(3)]),
        ("C4", InstanceNorm(out=OUT), [kind((2, 3, 4)), floats(4), floats(3)]),
        ("C4", InstanceNorm(out=OUT), [kind((2, 3, 4)), floats(3), floats(1, 3)]),
        ("C4", GroupNorm(groups=3, out=OUT), [kind((2, 3, 4)), floats(3), kind((3,))]),
    ],
)
def test_channels_refuse_c1_to_c4(constraint: str, op: Op, operands: Any) -> None:
    with pytest.raises(intonnx.TypeFailure, match=constraint):
        op.infer(operands)


# -- against onnxruntime --------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [SHAPE, (3, 4, 9), (1, 4, 2, 3, 2)])
@pytest.mark.parametrize(("x", "y"), FULL_RANGE)
def test_instance_norm(x: Params, y: Params, shape: tuple[int, ...]) -> None:
    for opset, quantized in ((10, True), (17, False), (22, True)):
        given_model = model(Fed("x", shape, x, quantized=quantized), y, opset=opset, epsilon=0.01)
        graph = check_model(given_model, run_inputs(given_model), literal_quanta=1, export_quanta=1)
        assert names_of(graph) == ["qnn.instance_norm"]


@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize(("x", "y"), FULL_RANGE)
def test_group_norm(x: Params, y: Params, groups: int) -> None:
    for opset, quantized in ((21, True), (23, False)):
        given_model = model(
            Fed("x", SHAPE, x, quantized=quantized), y, groups=groups, opset=opset, epsilon=0.01
        )
        graph = check_model(given_model, run_inputs(given_model), literal_quanta=1, export_quanta=1)
        assert names_of(graph) == ["qnn.group_norm"]


# -- against float64 ------------------------------------------------------------------------------


@settings(max_examples=40)
@given(st.data())
def test_codes_are_those_of_float64(data: st.DataObject) -> None:
    x, y = data.draw(strategies.params(wide=True)), data.draw(strategies.params(wide=True))
    groups = data.draw(st.sampled_from([0, 1, 2, 4]))
    shape = (2, 4, data.draw(st.integers(1, 12)))
    codes = data.draw(strategies.codes(x.dtype, shape))
    given_model = model(Fed("x", shape, x, quantized=True), y, groups=groups)
    found = intonnx.compile(intonnx.import_model(given_model)).run({"x": codes})["y"]
    scale, bias = factors(4)
    rows = real(codes, x).reshape(2, groups or 4, -1)
    wanted = normalized(rows, (2,), float(np.float32(1e-5))).reshape(shape)
    apart({"y": found}, {"y": codes_of(wanted * scale[:, None] + bias[:, None], y)}, 1)


@pytest.mark.parametrize("groups", [0, 2])
def test_a_small_variance_is_not_lost(groups: int) -> None:
    # onnxruntime's GroupNormalization subtracts float32 squares here, and is off by half.
    x, y = u8(1.0, 0), s8(0.25, 0)
    given_model = model(Fed("x", (1, 4, 768), x, quantized=True), y, groups=groups)
    codes = nearly_constant(np.uint8, (1, 4, 768))
    found = intonnx.compile(intonnx.import_model(given_model)).run({"x": codes})["y"]
    rows = real(codes, x).reshape(1, groups or 4, -1)
    scale, bias = factors(4)
    wanted = normalized(rows, (2,), 1e-5).reshape(codes.shape) * scale[:, None] + bias[:, None]
    np.testing.assert_array_equal(found, codes_of(wanted, y))


@pytest.mark.parametrize("groups", [0, 2])
def test_an_item_depends_neither_on_its_batch_nor_on_the_memory(groups: int) -> None:
    x = Fed("x", ("n", 4, 8, 8), u8(0.02, 114), quantized=True)
    graph = intonnx.import_model(model(x, s8(0.02, 3), groups=groups))
    assert intonnx.parse(str(graph), weights=graph.constants) == graph
    executable = intonnx.compile(graph)
    codes = np.random.default_rng(0).integers(0, 256, (5, 4, 8, 8)).astype(np.uint8)
    whole = executable.run({"x": codes})["y"]
    last = np.ascontiguousarray(codes.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
    np.testing.assert_array_equal(executable.run({"x": last})["y"], whole)
    for item in range(5):
        single = executable.run({"x": codes[item : item + 1]})["y"]
        np.testing.assert_array_equal(single, whole[item : item + 1])
    assert executable.run({"x": codes[:0]})["y"].shape == (0, 4, 8, 8)


# -- what stays float -----------------------------------------------------------------------------


@pytest.mark.parametrize("groups", [0, 2])
@pytest.mark.parametrize(
    ("x", "y", "code"),
    [
        (Fed("x", (3, 4, 5)), u8(0.1), "input-not-quantized"),
        (Fed("x", (3, 4, 5), u8(0.1)), None, "output-not-quantized"),
        (Fed("x", (3, 4, 5), u8([0.1] * 3, [0] * 3, axis=0)), u8(0.1), "per-axis-input"),
        (Fed("x", (3, 4, 5), u8(0.1)), u8([0.1] * 3, [0] * 3, axis=0), "unsupported-attribute"),
    ],
)
def test_refusals(x: Fed, y: Params | None, code: str, groups: int) -> None:
    op_type = "GroupNormalization" if groups else "InstanceNormalization"
    assert refusal_of(model(x, y, groups=groups), op_type)[0] == code


def test_a_bias_computed_at_run_time_is_refused() -> None:
    inputs = [Fed("x", (3, 4, 5), u8(0.1), quantized=True), Held(factors(4)[0]), Fed("b", (4,))]
    given_model = qdq_model("InstanceNormalization", inputs, out=u8(0.1))
    code, detail = refusal_of(given_model, "InstanceNormalization")
    assert code == "runtime-constant"
    assert "'b'" in detail
