"""qnn.max_pool1d, 2d and 3d against the plain model and onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import intonnx
from intonnx.ir.errors import TypeFailure
from intonnx.ir.ops.max_pool import MaxPool, MaxPool1d, MaxPool2d
from intonnx.ir.ops.quantize import Requantize
from intonnx.ir.types import DType, QuantParams, TensorType, plain, quantized
from support import bigint, strategies
from support.models import Builder, Fed, Params, qdq_model, qoperator_model, run_inputs, s8, u8, u16
from support.strategies import PoolCase
from support.wings import apart, check_model, refusal_of

U8 = QuantParams(storage=DType.U8, scale=0.5, zero_point=3)


def op(**changes: Any) -> MaxPool:
    fields: dict[str, Any] = {
        "kernel": (2, 2), "strides": (1, 1), "pads": (0, 0, 0, 0), "dilations": (1, 1),
    }  # fmt: skip
    return MaxPool2d(**{**fields, **changes})


# -- constraints ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("constraint", "changes", "x"),
    [
        ("C1", {}, plain(DType.F32, [1, 2, 5, 5])),
        ("C1", {}, quantized(U8, [1, 2, 5])),
        ("C1", {}, quantized(U8, None)),
        ("C2", {"kernel": (2,)}, quantized(U8, [1, 2, 5, 5])),
        ("C2", {"strides": (0, 1)}, quantized(U8, [1, 2, 5, 5])),
        ("C2", {"pads": (2, 0, 0, 0)}, quantized(U8, [1, 2, 5, 5])),
        ("C2", {"pads": (0, 0, -1, 0)}, quantized(U8, [1, 2, 5, 5])),
        ("C3", {"kernel": (9, 2)}, quantized(U8, [1, 2, 5, 5])),
    ],
)
def test_constraints(constraint: str, changes: dict[str, Any], x: TensorType) -> None:
    with pytest.raises(TypeFailure) as failure:
        op(**changes).infer([x])
    assert failure.value.constraint == constraint


def test_c1_one_scale() -> None:
    per_axis = QuantParams(storage=DType.U8, scale=[1, 2], zero_point=[0, 0], axis=1)
    with pytest.raises(TypeFailure, match="C1"):
        op().infer([quantized(per_axis, [1, 2, 5, 5])])


def test_unknown_sizes_stay_where_the_window_keeps_them() -> None:
    (kind,) = op(pads=(1, 0, 0, 0)).infer([quantized(U8, ["N", 2, "H", "W"])])
    assert kind.shape == ("N", 2, "H", "?")


# -- arithmetic -----------------------------------------------------------------------------------


def attributes(case: PoolCase, dilations: list[int] | None = None) -> dict[str, Any]:
    found = {**case.window, "kernel_shape": case.kernel, "ceil_mode": int(case.ceil_mode)}
    return found if dilations is None else {**found, "dilations": dilations}


@settings(max_examples=40)
@given(strategies.pool_cases(), st.sampled_from([12, 13, 22]))
def test_on_plain_codes_it_is_onnxruntime_and_the_plain_model(case: PoolCase, opset: int) -> None:
    x = Fed("x", case.x.shape, dtype=case.x.dtype)
    model = qoperator_model(
        "MaxPool", [x], case.x.dtype, attrs=attributes(case), opset=opset, domain=""
    )
    graph = check_model(model, {"x": case.x}, quanta=0)
    assert isinstance(graph.nodes[0].op, MaxPool)
    wanted = bigint.max_pool(case.x, case.kernel, **case.window)
    apart(intonnx.compile(graph).run({"x": case.x}), {"y": wanted}, 0)


@settings(max_examples=40)
@given(strategies.pool_cases(), st.booleans(), st.booleans())
def test_dq_max_pool_q_is_one_max_pool_and_at_most_one_requantize(
    case: PoolCase, fed_codes: bool, equal: bool
) -> None:
    out = case.x_params if equal else case.out
    x = Fed("x", case.x.shape, case.x_params, quantized=fed_codes)
    model = qdq_model("MaxPool", [x], out=out, attrs=attributes(case), opset=13)
    inputs = {"x": case.x} if fed_codes else run_inputs(model)
    graph = check_model(model, inputs, quanta=0, kernel=fed_codes)
    kinds = [type(node.op) for node in graph.nodes]
    assert sum(issubclass(kind, MaxPool) for kind in kinds) == 1
    assert kinds.count(Requantize) == (0 if same(case.x_params, out) else 1)


def same(a: Params, b: Params) -> bool:
    return bool(a.scale_array == b.scale_array) and a.zero_point == b.zero_point


@settings(max_examples=20)
@given(strategies.pool_cases(), st.lists(st.integers(1, 3), min_size=3, max_size=3))
def test_dilations(case: PoolCase, steps: list[int]) -> None:
    sizes = case.x.shape[2:]
    dilations = [
        step if (k - 1) * step < size else 1
        for step, k, size in zip(steps, case.kernel, sizes, strict=False)
    ]
    x = Fed("x", case.x.shape, case.x_params, quantized=True)
    attrs = attributes(case, dilations)
    model = qdq_model("MaxPool", [x], out=case.x_params, attrs=attrs, opset=12)
    check_model(model, {"x": case.x}, quanta=0)


@pytest.mark.parametrize("auto_pad", ["SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET"])
@pytest.mark.parametrize("opset", [10, 11, 12, 19, 22])
def test_auto_pad_at_every_opset(auto_pad: str, opset: int) -> None:
    model = qdq_model(
        "MaxPool",
        [Fed("x", (2, 3, 7, 8), s8(0.02, -128))],
        out=s8(0.02, -128),
        attrs={"kernel_shape": [3, 2], "strides": [2, 3], "auto_pad": auto_pad},
        opset=opset,
    )
    check_model(model, run_inputs(model), quanta=0)


@pytest.mark.parametrize("dtype", [np.uint16, np.int16])
def test_16_bit_codes_go_through_real_values_in_the_export(dtype: type) -> None:
    params = Params(dtype, 0.001, 7)
    x = Fed("x", (2, 3, 7, 8), params)
    attrs = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
    model = qdq_model("MaxPool", [x], out=params, attrs=attrs)
    check_model(model, run_inputs(model), quanta=0)


def test_a_float_result_keeps_its_name() -> None:
    build = Builder()
    x = build.operand(Fed("x", (1, 2, 4, 4), u8(0.02, 114)), 0)
    build.output(build.node("MaxPool", [x], name="y", kernel_shape=[2, 2]), np.float32)
    model = build.model()
    check_model(model, run_inputs(model))


def test_the_layout_of_channels_last_memory_is_kept() -> None:
    x = np.moveaxis(np.arange(2 * 5 * 5 * 8, dtype=np.uint8).reshape(2, 5, 5, 8), -1, 1)
    model = qoperator_model(
        "MaxPool", [Fed("x", x.shape, dtype=np.uint8)], np.uint8, domain="",
        attrs={"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]},
    )  # fmt: skip
    graph = intonnx.import_model(model)
    (step,) = intonnx.compile(graph)._steps
    (result,) = step.kernel([x])
    assert np.moveaxis(result, 1, -1).flags.c_contiguous
    np.testing.assert_array_equal(result, bigint.max_pool(x, [3, 3], pads=[1, 1, 1, 1]))


def test_sizes_known_at_run_time_only() -> None:
    x = Fed("x", ("N", 3, "H", "W"), u8(0.02, 114), quantized=True)
    attrs = {"kernel_shape": [3, 3], "strides": [2, 2], "auto_pad": "SAME_LOWER"}
    model = qdq_model("MaxPool", [x], out=u8(0.02, 114), attrs=attrs)
    codes = np.random.default_rng(0).integers(0, 256, (2, 3, 6, 9)).astype(np.uint8)
    check_model(model, {"x": codes}, quanta=0)


# -- indices -------------------------------------------------------------------------------------


def indices_model(case: PoolCase, *, order: int, fed_codes: bool = True) -> onnx.ModelProto:
    build = Builder()
    x = build.operand(Fed("x", case.x.shape, case.x_params, quantized=fed_codes), 0)
    attrs = {**attributes(case), "storage_order": order}
    pooled = build.node("MaxPool", [x], name="m", results=2, **attrs)
    build.output(build.quantize(pooled, case.out, "y"), case.out.dtype)
    build.output("m_1", np.int64)
    return build.model()


@settings(max_examples=40)
@given(strategies.pool_cases(), st.integers(0, 1), st.booleans())
def test_indices_of_the_first_of_equals(case: PoolCase, order: int, few: bool) -> None:
    info = np.iinfo(case.x.dtype)
    x = np.where(case.x > 0, info.max, info.min).astype(case.x.dtype) if few else case.x
    check_model(indices_model(case, order=order), {"x": x}, quanta=0)


def test_indices_alone() -> None:
    build = Builder()
    x = build.operand(Fed("x", (2, 3, 5, 5), s8(0.02, 14), quantized=True), 0)
    build.node("MaxPool", [x], name="m", results=2, kernel_shape=[2, 3])
    build.output("m_1", np.int64)
    model = build.model()
    check_model(model, run_inputs(model), quanta=0)


@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("dtype", [np.uint16, np.int16])
def test_indices_of_16_bit_codes(dtype: type, order: int) -> None:
    params = Params(dtype, 0.001, 7)
    x = strategies.PoolCase(np.zeros((2, 3, 7, 8), dtype), params, params, [3, 2], [1, 2],
                            [1, 1, 1, 1], ceil_mode=False, count_include_pad=False)  # fmt: skip
    model = indices_model(x, order=order, fed_codes=False)
    check_model(model, run_inputs(model), quanta=0)


# -- refusals -------------------------------------------------------------------------------------


def test_refuses_a_float_input() -> None:
    model = qdq_model("MaxPool", [Fed("x", (1, 2, 4))], attrs={"kernel_shape": [2]})
    assert refusal_of(model, "MaxPool")[0] == "input-not-quantized"


def test_refuses_a_scale_for_each_channel() -> None:
    x = Fed("x", (1, 2, 4), u8([0.1, 0.2], [0, 1], axis=1))
    model = qdq_model("MaxPool", [x], attrs={"kernel_shape": [2]})
    assert refusal_of(model, "MaxPool")[0] == "per-axis-input"


def test_refuses_windows_of_padding_alone_without_a_quantizer() -> None:
    x = Fed("x", (1, 2, 1), u16(0.1, 5))
    attrs = {"kernel_shape": [2], "dilations": [2], "pads": [1, 1]}
    assert refusal_of(qdq_model("MaxPool", [x], attrs=attrs), "MaxPool")[0] == (
        "unsupported-attribute"
    )
    model = qdq_model("MaxPool", [x], out=u16(0.2, 9), attrs=attrs)
    check_model(model, run_inputs(model), quanta=0)


def test_one_spatial_axis() -> None:
    model = qdq_model(
        "MaxPool", [Fed("x", (1, 2, 4), s8(0.1))], out=s8(0.1), attrs={"kernel_shape": [2]}
    )
    assert any(isinstance(n.op, MaxPool1d) for n in intonnx.import_model(model).nodes)
