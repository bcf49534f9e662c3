"""qnn.batch_norm, and batch normalizations that join the weights of the operator before them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import intonnx
from intonnx.ir.errors import TypeFailure
from intonnx.ir.ops.batch_norm import BatchNorm
from intonnx.ir.types import DType, QuantParams, plain, quantized
from support import strategies
from support.models import Array, Builder, Fed, Held, Params, qdq_model, run_inputs, s8, s32, u8
from support.runtime import run_onnxruntime
from support.wings import apart, check_model, refusal_of

U8 = QuantParams(storage=DType.U8, scale=0.5, zero_point=3)
F32 = np.float32


def statistics(seed: int, channels: int, *, negative: bool = True) -> list[Array]:
    """scale, bias, mean, variance."""
    rng = np.random.default_rng(seed)
    scale = rng.uniform(0.3, 2, channels) * (rng.choice([-1, 1], channels) if negative else 1)
    shift = [rng.normal(size=channels) for _ in range(2)]
    return [array.astype(F32) for array in (scale, *shift, rng.uniform(0.1, 3, channels))]


def held(arrays: list[Array]) -> list[Held]:
    return [Held(array) for array in arrays]


# -- constraints ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("constraint", "x", "others", "out"),
    [
        ("C1", plain(DType.U8, [1, 2, 5]), [plain(DType.F32, [2])] * 4, U8),
        ("C1", quantized(U8, [2]), [plain(DType.F32, [2])] * 4, U8),
        ("C2", quantized(U8, [1, 3, 5]), [plain(DType.F32, [2])] * 4, U8),
        ("C2", quantized(U8, [1, 2, 5]), [plain(DType.F64, [2])] * 4, U8),
        ("C2", quantized(U8, [1, 2, 5]), [plain(DType.F32, [2, 1])] * 4, U8),
        ("C3", quantized(U8, [1, 2, 5]), [plain(DType.F32, [2])] * 4,
         QuantParams(storage="u8", scale=[1, 2], zero_point=[0, 0], axis=1)),
        ("C3", quantized(U8, [1, 2, 5]), [plain(DType.F32, [2])] * 4,
         QuantParams(storage="i32", scale=1, zero_point=0)),
    ],
)  # fmt: skip
def test_constraints(constraint: str, x: Any, others: list[Any], out: QuantParams) -> None:
    with pytest.raises(TypeFailure) as failure:
        BatchNorm(out=out).infer([x, *others])
    assert failure.value.constraint == constraint


# -- on codes -------------------------------------------------------------------------------------


@st.composite
def shapes(draw: st.DrawFn) -> tuple[int, ...]:
    spatial = draw(st.lists(st.integers(1, 5), max_size=3))
    return (draw(st.integers(1, 3)), 3, *spatial)


@settings(max_examples=60)
@given(
    shapes(),
    strategies.params(wide=True),
    strategies.params(wide=True),
    st.integers(0, 99),
    st.sampled_from([9, 14, 15, 22]),
    st.booleans(),
)
def test_on_codes_it_is_onnxruntime_to_the_last_code(
    shape: tuple[int, ...], x_params: Params, out: Params, seed: int, opset: int, fed_codes: bool
) -> None:
    if np.dtype(x_params.dtype).itemsize == 2 or np.dtype(out.dtype).itemsize == 2:
        opset = 22
    x = Fed("x", shape, x_params, quantized=fed_codes)
    inputs = [x, *held(statistics(seed, 3))]
    model = qdq_model(
        "BatchNormalization", inputs, out=out, attrs={"epsilon": 1e-3}, opset=max(opset, 13)
    )
    graph = check_model(model, run_inputs(model, seed), quanta=0)
    eight = np.dtype(x_params.dtype).itemsize == 1
    operators = {node.op_type for node in intonnx.to_onnx(graph).graph.node}
    assert ("BatchNormalization" in operators) == (not eight)


@pytest.mark.parametrize("opset", [10, 14, 15, 22])
def test_every_opset_and_scales_for_each_channel(opset: int) -> None:
    axis = u8([0.02, 0.5, 0.001], [3, 0, 255], axis=1) if opset >= 13 else u8(0.03, 77)
    inputs = [Fed("x", (2, 3, 4, 5), axis), *held(statistics(4, 3))]
    model = qdq_model("BatchNormalization", inputs, out=s8(0.02, -5), opset=opset)
    check_model(model, run_inputs(model), quanta=0)


def test_symbolic_sizes_and_degenerate_statistics() -> None:
    values = statistics(4, 3)
    values[0][0], values[3][1] = 0, -1  # a constant channel, and one that is not a number
    model = qdq_model(
        "BatchNormalization", [Fed("x", ("N", 3, "W"), u8(0.1, 9), quantized=True), *held(values)],
        out=u8(0.03, 100),
    )  # fmt: skip
    codes = np.arange(256 * 3, dtype=np.uint8).reshape(1, 3, 256)
    graph = check_model(model, {"x": codes}, quanta=0)
    assert np.all(intonnx.compile(graph).run({"x": codes})["y"][0, 1] == 0)


# -- after an accumulator -------------------------------------------------------------------------


def normalized(
    op_type: str,
    x: Fed,
    w: Held,
    values: list[Array],
    out: Params | None,
    *,
    bias: Held | None = None,
    extra: str = "",
    **attrs: Any,
) -> onnx.ModelProto:
    """DQ -> op -> BatchNormalization -> Q, or no Q; `extra` is read from the middle as well."""
    build = Builder()
    names = [build.operand(operand, i) for i, operand in enumerate([x, w, bias]) if operand]
    real = build.node(op_type, names, name="middle", **attrs)
    names = [build.constant(name, value) for name, value in zip("sbmv", values, strict=True)]
    y = build.node("BatchNormalization", [real, *names], name="normal")
    if extra:
        build.output(build.node(extra, [real], name="other"), F32)
    build.output(y if out is None else build.quantize(y, out, "y"), out.dtype if out else F32)
    return build.model()


def operators(graph: intonnx.Graph) -> list[str]:
    names = [node.op.name for node in graph.nodes]
    return [name for name in names if name not in ("qnn.storage_cast", "qnn.quantize")]


WEIGHTS: dict[str, tuple[tuple[int, ...], int]] = {
    "Conv": ((4, 3, 3, 3), 0),
    "ConvTranspose": ((3, 4, 3, 3), 1),
    "MatMul": ((6, 4), 1),
    "Gemm": ((6, 4), 1),
}


def input_shape(op_type: str) -> tuple[int, ...]:
    return (2, 6) if op_type in ("MatMul", "Gemm") else (2, 3, 5, 5)


@settings(max_examples=80)
@given(
    st.sampled_from(sorted(WEIGHTS)),
    strategies.storages(),
    strategies.storages(),
    st.sampled_from(["tensor", "symmetric", "asymmetric"]),
    st.booleans(),
    st.integers(0, 99),
    st.data(),
)
def test_it_joins_the_weights_of_the_operator_before_it(
    op_type: str,
    storage: Any,
    weights: Any,
    kind: str,
    biased: bool,
    seed: int,
    data: st.DataObject,
) -> None:
    if op_type in ("MatMul", "Gemm"):
        weights = storage
    rng, (shape, axis) = np.random.default_rng(seed), WEIGHTS[op_type]
    low, high = (np.iinfo(weights).min, np.iinfo(weights).max)
    w_params = Params(weights, 0.01, data.draw(strategies.zero_points(weights)))
    if kind != "tensor":
        w_params = data.draw(
            strategies.axis_params(4, axis, weights, symmetric=kind == "symmetric")
        )
    x_params = Params(storage, 0.02, data.draw(strategies.zero_points(storage)))
    scale = x_params.scale_array * w_params.scale_array
    bias = Held(rng.integers(-9000, 9000, 4), s32(scale, 0, 0 if scale.ndim else None))
    values = statistics(seed, 4)
    reach = float(np.max(w_params.scale_array)) * 40
    out = Params(storage, reach, data.draw(strategies.zero_points(storage)))
    model = normalized(
        op_type,
        Fed("x", input_shape(op_type), x_params, quantized=True),
        Held(rng.integers(low, high + 1, shape), w_params),
        values,
        out,
        bias=bias if biased and op_type != "MatMul" else None,
    )
    graph = intonnx.import_model(model)
    assert len(operators(graph)) == 2, operators(graph)
    inputs = run_inputs(model, seed)
    wanted = run_onnxruntime(model, inputs, optimized=False)
    result = intonnx.compile(graph).run(inputs)
    apart(result, wanted, 1)
    apart(intonnx.compile(graph, numerics="qdq").run(inputs), wanted, 1)
    exported = intonnx.to_onnx(graph)
    written = {node.op_type for node in exported.graph.node}
    float_form = written & {"Conv", "ConvTranspose", "MatMul", "Gemm"}
    apart(run_onnxruntime(exported, inputs, optimized=False), result, 1 if float_form else 0)
    literal = intonnx.to_onnx(graph, form="qdq")
    apart(run_onnxruntime(literal, inputs, optimized=False), wanted, 1)


@pytest.mark.parametrize("op_type", sorted(WEIGHTS))
def test_without_a_quantizer_the_accumulator_stays(op_type: str) -> None:
    shape, axis = WEIGHTS[op_type]
    rng = np.random.default_rng(3)
    w = Held(rng.integers(-128, 128, shape), s8([0.01, 0.02, 0.05, 0.004], axis=axis))
    x = Fed("x", input_shape(op_type), u8(0.02, 100), quantized=True)
    model = normalized(op_type, x, w, statistics(5, 4), None)
    graph = intonnx.import_model(model)
    assert operators(graph)[1:] == ["qnn.dequantize"]
    inputs = run_inputs(model)
    wanted = run_onnxruntime(model, inputs, optimized=False)["normal"]
    found = intonnx.compile(graph).run(inputs)["normal"]
    np.testing.assert_allclose(found, wanted, atol=3e-5 * np.abs(wanted).max())


def test_a_channel_with_factor_0_keeps_its_addend_only() -> None:
    values = statistics(5, 4)
    values[0][1] = 0
    w = Held(np.random.default_rng(3).integers(-128, 128, (4, 3, 3, 3)), s8(0.01))
    bias = Held(np.asarray([5, 6, 7, 8000]), s32(0.0002))
    x = Fed("x", (2, 3, 5, 5), u8(0.02, 100), quantized=True)
    model = normalized("Conv", x, w, values, u8(0.03, 100), bias=bias)
    graph = check_model(model, run_inputs(model), literal_quanta=1)
    assert operators(graph)[:2] == ["qnn.conv2d", "qnn.requantize"]
    y = intonnx.compile(graph).run(run_inputs(model))["y"][:, 1]
    assert np.all(y == np.rint(values[1][1] / F32(0.03)) + 100)


def test_several_chains_join_one_after_the_other() -> None:
    build = Builder()
    x = build.operand(Fed("x", (1, 3, 6, 6), u8(0.02, 128)), 0)
    w = build.operand(Held(np.random.default_rng(1).integers(-128, 128, (4, 3, 3, 3)), s8(0.01)), 1)
    real = build.node("Conv", [x, w])
    addend = build.constant("a", np.asarray([1, -1, 2, 0], F32).reshape(4, 1, 1))
    real = build.node("Add", [real, addend])
    for count in range(2):
        values = zip("sbmv", statistics(count, 4), strict=True)
        names = [build.constant(f"{name}{count}", value) for name, value in values]
        real = build.node("BatchNormalization", [real, *names])
    build.output(build.quantize(build.node("Relu", [real]), u8(0.05), "y"), np.uint8)
    model = build.model()
    graph = check_model(model, run_inputs(model), literal_quanta=1)
    assert operators(graph)[:2] == ["qnn.conv2d", "qnn.requantize"]


@pytest.mark.parametrize("extra", ["Identity", "Abs"])
def test_an_accumulator_that_others_read_is_normalized_by_itself(extra: str) -> None:
    w = Held(np.random.default_rng(1).integers(-128, 128, (4, 3, 3, 3)), s8(0.01))
    x = Fed("x", (1, 3, 5, 5), u8(0.02, 128), quantized=True)
    model = normalized("Conv", x, w, statistics(1, 4), u8(0.05, 99), extra=extra)
    graph = intonnx.import_model(model)
    assert "qnn.batch_norm" in operators(graph)
    inputs = run_inputs(model)
    wanted = run_onnxruntime(model, inputs, optimized=False)
    for compiled in (intonnx.compile(graph), intonnx.compile(graph, numerics="qdq")):
        apart({"y": compiled.run(inputs)["y"]}, {"y": wanted["y"]}, 1)
    found = run_onnxruntime(intonnx.to_onnx(graph), inputs, optimized=False)
    apart({"y": found["y"]}, {"y": intonnx.compile(graph).run(inputs)["y"]}, 0)


def test_a_bias_that_does_not_fit_stays_apart() -> None:
    """Tiny factors make the addend too large for 32 bits at the new scale."""
    values = statistics(1, 4)
    values[0][:] = 1e-9
    w = Held(np.random.default_rng(1).integers(-128, 128, (4, 3, 3, 3)), s8(0.01))
    x = Fed("x", (1, 3, 5, 5), u8(0.02, 128), quantized=True)
    model = normalized("Conv", x, w, values, u8(0.01, 99))
    graph = check_model(model, run_inputs(model), literal_quanta=1)
    assert operators(graph) == ["qnn.conv2d", "qnn.batch_norm"]


def test_a_matrix_product_with_other_channels() -> None:
    """[2, 5, 4]: the channels of the normalization are the rows, not the columns of the weights."""
    w = Held(np.random.default_rng(1).integers(-128, 128, (6, 4)), s8(0.01))
    x = Fed("x", (2, 5, 6), s8(0.02), quantized=True)
    model = normalized("MatMul", x, w, statistics(1, 5), s8(0.05, 9))
    graph = check_model(model, run_inputs(model), literal_quanta=1)
    assert operators(graph) == ["qnn.dense", "qnn.batch_norm"]


def test_a_product_with_a_vector_has_no_channels() -> None:
    w = Held(np.random.default_rng(1).integers(-128, 128, 5), s8(0.01))
    x = Fed("x", (2, 5, 5), s8(0.02), quantized=True)
    model = normalized("MatMul", x, w, statistics(1, 5), s8(0.05, 9))
    check_model(model, run_inputs(model), literal_quanta=1)


@pytest.mark.parametrize("group", [2, 4])
def test_groups_of_a_transposed_convolution(group: int) -> None:
    rng = np.random.default_rng(1)
    w = Held(rng.integers(-128, 128, (4, 4 // group, 3, 3)), s8(0.01))
    x = Fed("x", (1, 4, 5, 5), u8(0.02, 128), quantized=True)
    model = normalized("ConvTranspose", x, w, statistics(1, 4), u8(0.05, 99), group=group)
    graph = check_model(model, run_inputs(model), literal_quanta=1)
    assert len(operators(graph)) == 2
    assert ("qnn.batch_norm" in operators(graph)) == (group == 2)


def test_shared_weights_are_rescaled_for_one_reader_only() -> None:
    build = Builder()
    x = build.operand(Fed("x", (1, 3, 5, 5), u8(0.02, 128), quantized=True), 0)
    w = build.operand(Held(np.random.default_rng(1).integers(-128, 128, (4, 3, 3, 3)), s8(0.01)), 1)
    names = [build.constant(n, v) for n, v in zip("sbmv", statistics(1, 4), strict=True)]
    y = build.node("BatchNormalization", [build.node("Conv", [x, w]), *names])
    build.output(build.quantize(y, u8(0.05, 99), "y"), np.uint8)
    build.output(build.quantize(build.node("Conv", [x, w]), u8(0.05, 99), "z"), np.uint8)
    model = build.model()
    check_model(model, run_inputs(model), literal_quanta=1)


# -- refusals -------------------------------------------------------------------------------------


def test_refusals() -> None:
    x, values = Fed("x", (1, 3, 4), u8(0.1, 9)), held(statistics(1, 3))
    model = qdq_model("BatchNormalization", [x, *values])
    assert refusal_of(model, "BatchNormalization")[0] == "output-not-quantized"
    model = qdq_model("BatchNormalization", [Fed("x", (1, 3, 4)), *values], out=u8(0.1))
    assert refusal_of(model, "BatchNormalization")[0] == "input-not-quantized"
    computed = [x, *values[:3], Fed("variance", (3,))]
    model = qdq_model("BatchNormalization", computed, out=u8(0.1))
    assert refusal_of(model, "BatchNormalization")[0] == "runtime-constant"
    model = qdq_model(
        "BatchNormalization", [x, *values], out=u8(0.1), attrs={"training_mode": 1}, opset=15
    )
    assert refusal_of(model, "BatchNormalization")[0] == "unsupported-attribute"
    per_axis = u8([0.1, 0.2, 0.3], [0, 0, 0], axis=1)
    model = qdq_model("BatchNormalization", [x, *values], out=per_axis)
    assert refusal_of(model, "BatchNormalization")[0] == "unsupported-attribute"
