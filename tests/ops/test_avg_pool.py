"""qnn.avg_pool1d, 2d and 3d against the plain model, onnxruntime, and the literal QDQ model."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import intonnx
from intonnx.ir.errors import TypeFailure
from intonnx.ir.ops.avg_pool import AvgPool, AvgPool2d
from intonnx.ir.types import DType, QuantParams, TensorType, plain, quantized
from support import bigint, strategies
from support.models import (
    Array,
    Builder,
    Fed,
    Params,
    qdq_model,
    qoperator_model,
    run_inputs,
    s8,
    u8,
)
from support.runtime import run_onnxruntime
from support.strategies import PoolCase
from support.wings import apart, check_model, refusal_of

U8 = QuantParams(storage=DType.U8, scale=0.5, zero_point=3)
RNG = np.random.default_rng(0)


def op(**changes: Any) -> AvgPool:
    fields: dict[str, Any] = {
        "kernel": (2, 2), "strides": (1, 1), "pads": (0, 0, 0, 0), "dilations": (1, 1), "out": U8,
    }  # fmt: skip
    return AvgPool2d(**{**fields, **changes})


# -- constraints ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("constraint", "changes", "x"),
    [
        ("C1", {}, plain(DType.U8, [1, 2, 5, 5])),
        ("C1", {}, quantized(U8, [1, 2, 5])),
        ("C1", {}, quantized(QuantParams(storage="i32", scale=1, zero_point=0), [1, 2, 5, 5])),
        ("C2", {"strides": (1, 1, 1)}, quantized(U8, [1, 2, 5, 5])),
        ("C2", {"dilations": (0, 1)}, quantized(U8, [1, 2, 5, 5])),
        ("C2", {"pads": (0, 0, 0, 2)}, quantized(U8, [1, 2, 5, 5])),
        ("C3", {"kernel": (2, 9)}, quantized(U8, [1, 2, 5, 5])),
        ("C3", {"kernel": (2, 9), "channels_last": True}, quantized(U8, [1, 20, 5, 20])),
    ],
)
def test_constraints(constraint: str, changes: dict[str, Any], x: TensorType) -> None:
    with pytest.raises(TypeFailure) as failure:
        op(**changes).infer([x])
    assert failure.value.constraint == constraint


def test_c4_the_result_is_per_tensor() -> None:
    per_axis = QuantParams(storage=DType.U8, scale=[1, 2], zero_point=[0, 0], axis=1)
    with pytest.raises(TypeFailure, match="C4"):
        op(out=per_axis).infer([quantized(U8, [1, 2, 5, 5])])


# -- QLinearAveragePool ---------------------------------------------------------------------------


def attributes(case: PoolCase) -> dict[str, Any]:
    return {
        **case.window,
        "kernel_shape": case.kernel,
        "ceil_mode": int(case.ceil_mode),
        "count_include_pad": int(case.count_include_pad),
    }


def fits_global_kernel(case: PoolCase) -> bool:
    """onnxruntime takes the global kernel for a whole image, and that has limits."""
    if tuple(case.kernel) != case.x.shape[2:] or any(case.pads):
        return True
    k = case.x_params.scale / case.out.scale / np.prod(case.kernel)
    return bool(2.0**-32 <= k < 256)


def qlinear_model(case: PoolCase, x: Array, **attrs: Any) -> onnx.ModelProto:
    quantization = (case.x_params, case.out)
    (sx, zx), (sy, zy) = ((p.scale_array, p.zero_array) for p in quantization)
    return qoperator_model(
        "QLinearAveragePool",
        [Fed("x", x.shape, dtype=x.dtype), sx, zx, sy, zy],
        x.dtype,
        attrs={**attributes(case), **attrs},
    )


@settings(max_examples=60)
@given(strategies.pool_cases().filter(fits_global_kernel), st.booleans())
def test_qlinear_average_pool_is_onnxruntime_and_the_plain_model(
    case: PoolCase, channels_last: bool
) -> None:
    x = np.ascontiguousarray(np.moveaxis(case.x, 1, -1)) if channels_last else case.x
    model = qlinear_model(case, x, channels_last=int(channels_last))
    graph = intonnx.import_model(model)
    assert intonnx.coverage(graph).float == 0
    (result,) = intonnx.compile(graph).run({"x": x}).values()
    wanted = bigint.qlinear_average_pool(
        case.x, case.x_params.scale_array, case.x_params.zero_array, case.out.scale_array,
        case.out.zero_array, case.kernel, count_include_pad=case.count_include_pad, **case.window,
    )  # fmt: skip
    np.testing.assert_array_equal(np.moveaxis(result, -1, 1) if channels_last else result, wanted)
    for optimized in (False, True):
        for m in (model, intonnx.to_onnx(graph)):
            apart(run_onnxruntime(m, {"x": x}, optimized=optimized), {"y": result}, 0)
    literal = intonnx.compile(graph, numerics="qdq").run({"x": x})
    apart(literal, {"y": result}, 1)
    exported = intonnx.to_onnx(graph, form="qdq")
    apart(run_onnxruntime(exported, {"x": x}, optimized=False), literal, 1)


# -- AveragePool between DQ and Q -----------------------------------------------------------------


@settings(max_examples=60)
@given(strategies.pool_cases(), st.booleans(), st.sampled_from([19, 22]))
def test_dq_average_pool_q_is_literal_from_opset_19_on(
    case: PoolCase, fed_codes: bool, opset: int
) -> None:
    x = Fed("x", case.x.shape, case.x_params, quantized=fed_codes)
    model = qdq_model("AveragePool", [x], out=case.out, attrs=attributes(case), opset=opset)
    check_model(model, {"x": case.x} if fed_codes else run_inputs(model))


@settings(max_examples=40)
@given(strategies.pool_cases(), st.sampled_from([10, 11, 18]))
def test_below_opset_19_onnxruntime_adds_in_another_order(case: PoolCase, opset: int) -> None:
    x = Fed("x", case.x.shape, case.x_params, quantized=True)
    model = qdq_model("AveragePool", [x], out=case.out, attrs=attributes(case), opset=opset)
    graph = intonnx.import_model(model)
    assert intonnx.coverage(graph).float == 0
    wanted = run_onnxruntime(model, {"x": case.x}, optimized=False)
    for numerics in ("qlinear", "qdq"):
        apart(intonnx.compile(graph, numerics=numerics).run({"x": case.x}), wanted, 1)
    for form in ("qlinear", "qdq"):
        exported = intonnx.to_onnx(graph, form=form)
        for optimized in (False, True):
            found = run_onnxruntime(exported, {"x": case.x}, optimized=optimized)
            apart(found, wanted, 1)


@settings(max_examples=20)
@given(strategies.pool_cases(), st.lists(st.integers(1, 3), min_size=3, max_size=3))
def test_dilations_have_no_qlinear_kernel(case: PoolCase, steps: list[int]) -> None:
    dilations = [
        step if (k - 1) * step < size else 1
        for step, k, size in zip(steps, case.kernel, case.x.shape[2:], strict=False)
    ]
    x = Fed("x", case.x.shape, case.x_params, quantized=True)
    attrs = {**attributes(case), "dilations": dilations}
    model = qdq_model("AveragePool", [x], out=case.out, attrs=attrs)
    check_model(model, {"x": case.x})


@pytest.mark.parametrize("dtype", [np.uint16, np.int16])
@pytest.mark.parametrize("out_dtype", [np.uint16, np.int8])
def test_16_bit_and_mixed_codes_are_literal(dtype: type, out_dtype: type) -> None:
    x = Fed("x", (2, 3, 7, 8), Params(dtype, 0.0003, 7))
    attrs = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
    model = qdq_model("AveragePool", [x], out=Params(out_dtype, 0.02, 5), attrs=attrs)
    check_model(model, run_inputs(model), quanta=0)


@pytest.mark.parametrize("auto_pad", ["SAME_UPPER", "SAME_LOWER", "VALID"])
@pytest.mark.parametrize("include", [0, 1])
@pytest.mark.parametrize("shape", [(2, 3, 7, 8), ("N", 3, "H", "W")])
def test_auto_pad(auto_pad: str, include: int, shape: tuple[int | str, ...]) -> None:
    params = s8(0.02, -128)
    attrs = {
        "kernel_shape": [3, 2], "strides": [2, 3], "auto_pad": auto_pad,
        "count_include_pad": include,
    }  # fmt: skip
    x = Fed("x", shape, params, quantized=True)
    model = qdq_model("AveragePool", [x], out=s8(0.015, -128), attrs=attrs)
    codes = RNG.integers(-128, 128, (2, 3, 7, 8)).astype(np.int8)
    check_model(model, {"x": codes})


# -- what onnxruntime must not fuse ---------------------------------------------------------------


def test_cells_beyond_the_padding_count_in_the_kernel_only() -> None:
    """7 cells by threes: the last window holds one, and the kernel would divide it by three."""
    attrs = {"kernel_shape": [3], "strides": [3], "ceil_mode": 1, "count_include_pad": 1}
    x = np.full((1, 1, 7), 60, np.uint8)
    model = qdq_model(
        "AveragePool", [Fed("x", x.shape, u8(0.5), quantized=True)], out=u8(0.5), attrs=attrs
    )
    graph = check_model(model, {"x": x})
    assert intonnx.compile(graph).run({"x": x})["y"].tolist() == [[[60, 60, 60]]]
    assert "QLinearAveragePool" not in {n.op_type for n in intonnx.to_onnx(graph).graph.node}
    fused = qoperator_model(
        "QLinearAveragePool",
        [Fed("x", x.shape, dtype=np.uint8), *[np.float32(0.5), np.uint8(0)] * 2],
        np.uint8,
        attrs=attrs,
    )
    graph = check_model(fused, {"x": x})
    assert intonnx.compile(graph).run({"x": x})["y"].tolist() == [[[60, 60, 20]]]
    assert "QLinearAveragePool" in {n.op_type for n in intonnx.to_onnx(graph).graph.node}


@pytest.mark.parametrize(("opset", "value"), [(11, 72), (17, 72), (19, 120), (22, 120)])
def test_a_kernel_larger_than_the_padded_data(opset: int, value: int) -> None:
    """Below opset 19 onnxruntime divides by all of its cells, later by those with data."""
    attrs = {"kernel_shape": [5], "strides": [3], "count_include_pad": 1}
    x = Fed("x", (1, 1, 3), u8(0.5), quantized=True)
    model = qdq_model("AveragePool", [x], out=u8(0.5), attrs=attrs, opset=opset)
    codes = np.full((1, 1, 3), 120, np.uint8)
    graph = check_model(model, {"x": codes})
    assert intonnx.compile(graph).run({"x": codes})["y"].tolist() == [[[value]]]


@pytest.mark.parametrize(("sx", "sy"), [(3000.0, 1.0), (2e-9, 8.0), (1e7, 1e-3)])
def test_multipliers_out_of_the_kernel_s_range(sx: float, sy: float) -> None:
    """A whole image takes the global kernel, which fails at run time; a window wraps around."""
    codes = RNG.integers(0, 256, (1, 2, 3, 3)).astype(np.uint8)
    x = Fed("x", codes.shape, u8(sx, 128), quantized=True)
    for kernel in ([3, 3], [2, 2]):
        model = qdq_model("AveragePool", [x], out=u8(sy, 9), attrs={"kernel_shape": kernel})
        check_model(model, {"x": codes})


def test_standard_runtime_has_no_contrib_operators() -> None:
    x = Fed("x", (1, 2, 5, 5), u8(0.5, 3))
    model = qdq_model("AveragePool", [x], out=u8(0.4, 1), attrs={"kernel_shape": [2, 2]})
    exported = intonnx.to_onnx(intonnx.import_model(model), runtime="standard")
    assert {node.domain for node in exported.graph.node} == {""}
    inputs = run_inputs(model)
    wanted = run_onnxruntime(model, inputs, optimized=False)
    apart(run_onnxruntime(exported, inputs, optimized=False), wanted, 0)


# -- refusals -------------------------------------------------------------------------------------


def test_refuses_without_a_quantizer() -> None:
    x = Fed("x", (1, 2, 5), u8(0.5, 3))
    model = qdq_model("AveragePool", [x], attrs={"kernel_shape": [2]})
    assert refusal_of(model, "AveragePool")[0] == "output-not-quantized"


def test_refuses_a_float_input() -> None:
    model = qdq_model("AveragePool", [Fed("x", (1, 2, 5))], out=u8(1), attrs={"kernel_shape": [2]})
    assert refusal_of(model, "AveragePool")[0] == "input-not-quantized"


def test_refuses_a_scale_for_each_channel() -> None:
    x = Fed("x", (1, 2, 4), u8([0.1, 0.2], [0, 1], axis=1))
    model = qdq_model("AveragePool", [x], out=u8(1), attrs={"kernel_shape": [2]})
    assert refusal_of(model, "AveragePool")[0] == "per-axis-input"


def test_refuses_a_result_that_is_also_read_as_float() -> None:
    build = Builder()
    x = build.operand(Fed("x", (1, 2, 4), u8(0.1)), 0)
    pooled = build.node("AveragePool", [x], kernel_shape=[2])
    build.output(build.quantize(pooled, u8(0.1), "y"), np.uint8)
    build.output(build.node("Identity", [pooled], name="z"), np.float32)
    assert refusal_of(build.model(), "AveragePool")[0] == "float-result-used"


def test_refuses_what_counts_by_sizes_that_are_not_known() -> None:
    model = qoperator_model(
        "QLinearAveragePool",
        [Fed("x", (1, 1, "W"), dtype=np.uint8), *[np.float32(0.5), np.uint8(0)] * 2],
        np.uint8,
        attrs={"kernel_shape": [3], "strides": [3], "ceil_mode": 1, "count_include_pad": 1},
    )
    assert refusal_of(model, "QLinearAveragePool")[0] == "unsupported-attribute"
