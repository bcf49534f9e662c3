"""qnn.global_avg_pool1d, 2d and 3d against the plain model and onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import intonnx
from intonnx.ir.errors import TypeFailure
from intonnx.ir.ops.global_avg_pool import GlobalAvgPool, GlobalAvgPool2d
from intonnx.ir.types import DType, QuantParams, TensorType, plain, quantized
from support import bigint, strategies
from support.models import (
    Array,
    Fed,
    Params,
    qdq_model,
    qoperator_model,
    run_inputs,
    s8,
    u8,
)
from support.runtime import run_onnxruntime
from support.wings import apart, check_model, refusal_of

U8 = QuantParams(storage=DType.U8, scale=0.5, zero_point=3)
RNG = np.random.default_rng(0)


# -- constraints ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "x",
    [
        plain(DType.U8, [1, 2, 5, 5]),
        quantized(U8, [1, 2, 5]),
        quantized(U8, None),
        quantized(QuantParams(storage="i32", scale=1, zero_point=0), [1, 2, 5, 5]),
    ],
)
def test_c1(x: TensorType) -> None:
    with pytest.raises(TypeFailure, match="C1"):
        GlobalAvgPool2d(out=U8).infer([x])


def test_c2_the_result_is_per_tensor() -> None:
    per_axis = QuantParams(storage=DType.U8, scale=[1, 2], zero_point=[0, 0], axis=1)
    with pytest.raises(TypeFailure, match="C2"):
        GlobalAvgPool2d(out=per_axis).infer([quantized(U8, [1, 2, 5, 5])])


# -- arithmetic -----------------------------------------------------------------------------------

shapes = st.sampled_from(
    [(2, 3, 5), (2, 3, 4, 5), (1, 5, 7, 7), (1, 1, 1, 1), (2, 2, 2, 3, 3), (1, 9, 1), (1, 2, 13, 9)]
)


@st.composite
def cases(draw: st.DrawFn, *, wide: bool = False) -> tuple[Array, Params, Params]:
    storage = draw(strategies.storages(wide=wide))
    first, second = draw(strategies.scale_ratios(2, 1e-2, 10.0))
    x = draw(strategies.codes(storage, draw(shapes)))
    sides = (Params(storage, scale, draw(strategies.zero_points(storage)))
             for scale in (first, second))  # fmt: skip
    return x, *sides  # type: ignore[return-value]


@settings(max_examples=60)
@given(cases(), st.booleans())
def test_qlinear_global_average_pool_is_onnxruntime_and_the_plain_model(
    case: tuple[Array, Params, Params], channels_last: bool
) -> None:
    x, px, py = case
    quantization = [px.scale_array, px.zero_array, py.scale_array, py.zero_array]
    wanted = bigint.qlinear_global_average_pool(x, *quantization)
    if channels_last:
        x, wanted = (np.ascontiguousarray(np.moveaxis(a, 1, -1)) for a in (x, wanted))
    model = qoperator_model(
        "QLinearGlobalAveragePool",
        [Fed("x", x.shape, dtype=x.dtype), *quantization],
        x.dtype,
        attrs={"channels_last": int(channels_last)},
    )
    graph = check_model(model, {"x": x}, quanta=0, literal_quanta=1)
    apart(intonnx.compile(graph).run({"x": x}), {"y": wanted}, 0)


@settings(max_examples=60)
@given(cases(), st.booleans(), st.sampled_from([10, 13, 22]))
def test_dq_global_average_pool_q(
    case: tuple[Array, Params, Params], fed_codes: bool, opset: int
) -> None:
    x, px, py = case
    fed = Fed("x", x.shape, px, quantized=fed_codes)
    model = qdq_model("GlobalAveragePool", [fed], out=py, opset=opset)
    graph = check_model(model, {"x": x} if fed_codes else run_inputs(model))
    assert isinstance(graph.nodes[-1].op, GlobalAvgPool)


@settings(max_examples=20)
@given(cases(wide=True), st.sampled_from([np.uint8, np.int8, np.uint16, np.int16]))
def test_16_bit_and_mixed_codes_are_literal(
    case: tuple[Array, Params, Params], storage: type
) -> None:
    x, px, py = case
    out = Params(storage, py.scale, np.iinfo(storage).max // 2)
    model = qdq_model("GlobalAveragePool", [Fed("x", x.shape, px, quantized=True)], out=out)
    check_model(model, {"x": x}, quanta=1 if storage is x.dtype.type else 0, kernel=False)


@pytest.mark.parametrize("shape", [(1, 1, 64, 64), (1, 3, 250, 3), (2, 1, 1001), (1, 1, 4)])
def test_long_sums_keep_the_order_of_the_lanes(shape: tuple[int, ...]) -> None:
    codes = RNG.integers(0, 2**16, shape).astype(np.uint16)
    x = Fed("x", shape, Params(np.uint16, 0.01, 7), quantized=True)
    model = qdq_model("GlobalAveragePool", [x], out=Params(np.uint16, 0.0101, 5))
    check_model(model, {"x": codes}, quanta=0)


# -- limits of the kernel -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ratio", "kernel"),
    [(1100.0, False), (256.0 * 4, False), (255.9 * 4, True), (2.0**-30, True), (2.0**-31, False)],
)
@pytest.mark.parametrize("zero", [0, 255])
def test_multipliers_out_of_the_kernel_s_range_stay_between_dq_and_q(
    ratio: float, kernel: bool, zero: int
) -> None:
    """The sum of 4 cells has the multiplier ratio / 4; onnxruntime fails where it is out of range.

    Just inside the limits the kernel is written and runs.
    """
    codes = RNG.integers(0, 256, (1, 2, 2, 2))
    x = Fed("x", codes.shape, u8(ratio, zero), quantized=True)
    model = qdq_model("GlobalAveragePool", [x], out=u8(1.0, 128))
    graph = check_model(model, {"x": codes.astype(np.uint8)})
    names = {node.op_type for node in intonnx.to_onnx(graph).graph.node}
    assert ("QLinearGlobalAveragePool" in names) == kernel


@pytest.mark.parametrize(("scale", "kernel"), [(0.5, True), (300.0, False)])
def test_sizes_known_at_run_time_only(scale: float, kernel: bool) -> None:
    x = Fed("x", ("N", 3, "H", "W"), s8(scale, 1), quantized=True)
    model = qdq_model("GlobalAveragePool", [x], out=s8(1.0, -128))
    codes = RNG.integers(-128, 128, (2, 3, 4, 5)).astype(np.int8)
    graph = check_model(model, {"x": codes})
    names = {node.op_type for node in intonnx.to_onnx(graph).graph.node}
    assert ("QLinearGlobalAveragePool" in names) == kernel


def test_standard_runtime_has_no_contrib_operators() -> None:
    model = qdq_model("GlobalAveragePool", [Fed("x", (1, 2, 5, 5), u8(0.5, 3))], out=u8(0.4, 1))
    exported = intonnx.to_onnx(intonnx.import_model(model), runtime="standard")
    assert {node.domain for node in exported.graph.node} == {""}
    inputs = run_inputs(model)
    wanted = run_onnxruntime(model, inputs, optimized=False)
    apart(run_onnxruntime(exported, inputs, optimized=False), wanted, 0)


# -- refusals -------------------------------------------------------------------------------------


def test_refuses_without_a_quantizer() -> None:
    model = qdq_model("GlobalAveragePool", [Fed("x", (1, 2, 5), u8(0.5, 3))])
    assert refusal_of(model, "GlobalAveragePool")[0] == "output-not-quantized"


def test_refuses_a_float_input() -> None:
    model = qdq_model("GlobalAveragePool", [Fed("x", (1, 2, 5))], out=u8(1))
    assert refusal_of(model, "GlobalAveragePool")[0] == "input-not-quantized"


def test_refuses_runtime_parameters() -> None:
    model = qoperator_model(
        "QLinearGlobalAveragePool",
        [Fed("x", (1, 2, 5), dtype=np.uint8), Fed("s", (), dtype=np.float32), np.uint8(0),
         np.float32(1), np.uint8(0)],
        np.uint8, attrs={"channels_last": 0},
    )  # fmt: skip
    assert refusal_of(model, "QLinearGlobalAveragePool")[0] == "runtime-parameters"
