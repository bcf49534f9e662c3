"""The two oracles agree: the plain models of tests/support against onnxruntime's kernels.

Optimization is off and weights are rewritten where this CPU would saturate, so every comparison is
bit for bit. Nothing of the product is used here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support import bigint, mlas, strategies
from support.float32 import F32, Array, fma, fma_fraction
from support.models import Fed, Held, Params, qdq_model, qoperator_model, run_inputs, s8, u8
from support.runtime import exact_model, expose, run_onnxruntime

# Half the profile's examples: these cases change only when onnxruntime does.
halved = settings(max_examples=settings().max_examples // 2)


def execute(
    op_type: str,
    inputs: list[Any],
    out_dtype: Any,
    feeds: Mapping[int, str] | None = None,
    /,
    **attrs: Any,
) -> Array:
    """One node by onnxruntime; the inputs named in `feeds` (default: the first) are fed."""
    feeds = {0: "x"} if feeds is None else feeds
    arrays = {name: np.asarray(inputs[i]) for i, name in feeds.items()}
    items = [
        Fed(feeds[i], arrays[feeds[i]].shape, dtype=arrays[feeds[i]].dtype) if i in feeds else item
        for i, item in enumerate(inputs)
    ]
    model = qoperator_model(op_type, items, out_dtype, attrs=attrs, infer=False)
    return run_onnxruntime(model, arrays, optimized=False)["y"]


def pair(params: Params) -> tuple[Array, Any]:
    """Scale and zero point in the storage type."""
    return params.scale_array, params.zero_array[()]


def test_fma_rounds_once_even_when_the_sum_cancels() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 2000)).astype(np.float32)
    near = -(a * b) * rng.choice([1.0, 0.5, 1.0000001], 2000).astype(np.float32)
    c = np.where(rng.random(2000) < 0.6, near, rng.standard_normal(2000).astype(np.float32))
    exact = [fma_fraction(x, y, z) for x, y, z in zip(a, b, c, strict=True)]
    np.testing.assert_array_equal(fma(a, b, c), np.array(exact, np.float32))


@halved
@given(st.data())
def test_quantize_and_dequantize(data: st.DataObject) -> None:
    params = data.draw(strategies.params(wide=True))
    scale, zero = pair(params)
    grid = (np.arange(-700, 700) * np.float64(0.5) * np.float64(scale)).astype(np.float32)
    special = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, 1e38, -1e38], np.float32)
    x = np.concatenate([grid, special])
    codes = bigint.quantize(x, scale, zero)
    np.testing.assert_array_equal(execute("QuantizeLinear", [x, scale, zero], zero.dtype), codes)
    np.testing.assert_array_equal(
        execute("DequantizeLinear", [codes, scale, zero], np.float32),
        bigint.dequantize(codes, scale, zero),
    )


@halved
@given(strategies.axis_params(5, 1, np.uint8, symmetric=False), st.integers(0, 99))
def test_quantize_along_an_axis(params: Params, seed: int) -> None:
    x = (np.random.default_rng(seed).standard_normal((2, 5, 3)) * 40).astype(np.float32)
    x *= params.scale_array.reshape(5, 1)
    scale, zero = params.scale_array, params.zero_array
    expected = bigint.quantize(x, scale, zero, 1)
    np.testing.assert_array_equal(execute("QuantizeLinear", [x, scale, zero], np.uint8), expected)
    np.testing.assert_array_equal(
        execute("DequantizeLinear", [expected, scale, zero], np.float32),
        bigint.dequantize(expected, scale, zero, 1),
    )


@halved
@given(strategies.conv_cases())
def test_conv(case: strategies.ConvCase) -> None:
    (sx, zx), (sy, zy) = pair(case.x_params), pair(case.out)
    sw, zw = case.w_params.scale_array, case.w_params.zero_array
    if case.x.dtype == np.uint8 or case.w.dtype == np.int8:  # there is no s8 x u8 kernel
        inputs: list[Any] = [case.x, sx, zx, case.w, sw, zw, sy, zy, case.bias]
        np.testing.assert_array_equal(
            execute("QLinearConv", inputs, zy.dtype, **case.geometry),
            bigint.qlinear_conv(*inputs, **case.geometry),
        )
    if zw.ndim == 0:
        np.testing.assert_array_equal(
            execute("ConvInteger", [case.x, case.w, zx, zw], np.int32, **case.geometry),
            bigint.conv_accumulator(case.x, case.w, zx, zw, **case.geometry),
        )


@halved
@given(strategies.matmul_cases(), st.booleans())
def test_matmul_family(case: strategies.MatmulCase, fed: bool) -> None:
    (sa, za), (sy, zy) = pair(case.a_params), pair(case.out)
    sb, zb = case.b_params.scale_array, case.b_params.zero_array
    a, b = case.a, case.b
    np.testing.assert_array_equal(
        execute("MatMulInteger", [a, b, za, zb], np.int32, {0: "a", 1: "b"} if fed else None),
        bigint.matmul_accumulator(a, b, za, zb),
    )
    if a.dtype == np.int8 and b.dtype == np.uint8:
        return
    bias = np.linspace(-5, 5, b.shape[-1], dtype=np.float32)
    np.testing.assert_array_equal(
        execute("QLinearMatMul", [a, sa, za, b, sb, zb, sy, zy], zy.dtype),
        bigint.qlinear_matmul(a, sa, za, b, sb, zb, sy, zy),
    )
    np.testing.assert_array_equal(
        execute("MatMulIntegerToFloat", [a, b, sa, sb, za, zb, bias], np.float32),
        bigint.matmul_integer_to_float(a, b, sa, sb, za, zb, bias),
    )
    x = bigint.dequantize(a, sa, za)
    np.testing.assert_array_equal(
        execute("DynamicQuantizeMatMul", [x, b, sb, zb, bias], np.float32),
        bigint.dynamic_quantize_matmul(x, b, sb, zb, bias),
    )


@halved
@given(strategies.matmul_cases(batched=False), st.data())
def test_gemm(case: strategies.MatmulCase, data: st.DataObject) -> None:
    if case.a.dtype == np.int8 and case.b.dtype == np.uint8:
        return
    trans_a, trans_b = data.draw(st.booleans()), data.draw(st.booleans())
    alpha = data.draw(st.sampled_from([1.0, 0.5, 0.3]))
    m, n = case.a.shape[0], case.b.shape[1]
    shape = data.draw(st.sampled_from([None, (), (1,), (n,), (1, n), (m, 1), (m, n)]))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    c = None if shape is None else np.asarray(rng.integers(-9999, 9999, shape), np.int32)
    (sa, za), (sy, zy) = pair(case.a_params), pair(case.out)
    sb, zb = case.b_params.scale_array, case.b_params.zero_array
    a = np.ascontiguousarray(case.a.T if trans_a else case.a)
    b = np.ascontiguousarray(case.b.T if trans_b else case.b)
    common: list[Any] = [a, sa, za, b, sb, zb, c]
    attrs = {"alpha": alpha, "transA": int(trans_a), "transB": int(trans_b)}
    options = {"alpha": alpha, "trans_a": trans_a, "trans_b": trans_b}
    np.testing.assert_array_equal(
        execute("QGemm", [*common, sy, zy], zy.dtype, **attrs),
        bigint.qgemm(*[*common, sy, zy], **options),
    )
    np.testing.assert_array_equal(
        execute("QGemm", common, np.float32, **attrs), bigint.qgemm(*common, **options)
    )


@halved
@given(strategies.binary_cases())
def test_add_and_mul(case: strategies.BinaryCase) -> None:
    sides: list[Any] = [case.a, *pair(case.a_params), case.b, *pair(case.b_params), *pair(case.out)]
    for op_type, model in [("QLinearAdd", bigint.qlinear_add), ("QLinearMul", bigint.qlinear_mul)]:
        y = execute(op_type, sides, case.a.dtype, {0: "a", 3: "b"})
        np.testing.assert_array_equal(y, model(*sides), op_type)


@pytest.mark.parametrize("scalar", ["neither", "a", "b"])
def test_add_where_the_last_bit_decides(scalar: str) -> None:
    rng = np.random.default_rng(5)
    every = np.arange(256, dtype=np.uint8)
    for _ in range(40):
        unit, over = np.exp(rng.uniform(-6, 1)), rng.choice([3, 6, 8, 10, 12, 24, 40])
        sa, sb = (F32(unit * p) for p in rng.integers(1, 2 * over, 2))
        za, zb, zy = rng.integers(0, 256, 3).astype(np.uint8)
        a = every[rng.integers(256)] if scalar == "a" else np.repeat(every, 256)
        b = every[rng.integers(256)] if scalar == "b" else np.tile(every, 256)
        sides = [a, sa, za, b, sb, zb, F32(unit * over), zy]
        y = execute("QLinearAdd", sides, np.uint8, {0: "a", 3: "b"})
        np.testing.assert_array_equal(y, bigint.qlinear_add(*sides))


@halved
@given(strategies.pool_cases())
def test_pools(case: strategies.PoolCase) -> None:
    ends: list[Any] = [case.x, *pair(case.x_params), *pair(case.out)]
    window = {"kernel_shape": case.kernel, **case.window}
    np.testing.assert_array_equal(
        execute(
            "QLinearAveragePool", ends, case.x.dtype,
            count_include_pad=case.count_include_pad, **window,
        ),
        bigint.qlinear_average_pool(
            *ends, kernel=case.kernel, count_include_pad=case.count_include_pad, **case.window
        ),
    )  # fmt: skip
    np.testing.assert_array_equal(
        execute("MaxPool", [case.x], case.x.dtype, **window),
        bigint.max_pool(case.x, case.kernel, **case.window),
    )
    np.testing.assert_array_equal(
        execute("QLinearGlobalAveragePool", ends, case.x.dtype, channels_last=0),
        bigint.qlinear_global_average_pool(*ends),
    )


@halved
@given(st.data())
def test_tables(data: st.DataObject) -> None:
    dtype = data.draw(strategies.storages())
    sx, sy, sz = (F32(s) for s in data.draw(strategies.scale_ratios(3)))
    zx, zy, zz = (dtype(data.draw(strategies.zero_points(dtype))) for _ in range(3))
    every = np.arange(256, dtype=np.uint8).view(dtype)
    ends: list[Any] = [every, sx, zx, sy, zy]
    np.testing.assert_array_equal(
        execute("QLinearSigmoid", ends, dtype), bigint.qlinear_sigmoid(*ends)
    )
    np.testing.assert_array_equal(
        execute("QLinearLeakyRelu", ends, dtype, alpha=0.1),
        bigint.qlinear_leaky_relu(*ends, alpha=0.1),
    )
    joined: list[Any] = [sy, zy, every, sx, zx, every[::-1].copy(), sz, zz]
    np.testing.assert_array_equal(
        execute("QLinearConcat", joined, dtype, {2: "a", 5: "b"}, axis=0),
        bigint.qlinear_concat(
            sy, zy, [(joined[2], joined[3], joined[4]), (joined[5], joined[6], joined[7])], 0
        ),
    )
    condition = np.array([[True], [False]])
    chosen = [condition, *joined[2:], sy, zy]
    np.testing.assert_array_equal(
        execute("QLinearWhere", chosen, dtype, {0: "c", 1: "a", 4: "b"}),
        bigint.qlinear_where(*chosen),
    )


@halved
@given(st.data())
def test_softmax(data: st.DataObject) -> None:
    dtype = data.draw(strategies.storages())
    shape = data.draw(st.sampled_from([(1, 1), (4, 2), (3, 6), (3, 10), (2, 3, 4), (2, 100)]))
    x = data.draw(strategies.codes(dtype, shape))
    sx = F32(data.draw(strategies.scales(1e-3, 2.0)))
    sy = F32(data.draw(st.sampled_from([1 / 3, 1 / 5, 1 / 256, 1 / 255, 0.01, 0.1, 2.0])))
    zx, zy = (dtype(data.draw(strategies.zero_points(dtype))) for _ in range(2))
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    opset = data.draw(st.sampled_from([11, 13]))
    np.testing.assert_array_equal(
        execute("QLinearSoftmax", [x, sx, zx, sy, zy], dtype, axis=axis, opset=opset),
        bigint.qlinear_softmax(x, sx, zx, sy, zy, axis=axis, opset=opset),
    )


@halved
@given(st.data())
def test_pad(data: st.DataObject) -> None:
    dtype = data.draw(strategies.storages())
    x = data.draw(strategies.codes(dtype, (2, 3, 4)))
    mode = data.draw(st.sampled_from(["constant", "reflect", "edge", "wrap"]))
    low = -1 if mode == "constant" else 0
    pads = data.draw(st.lists(st.integers(low, 1), min_size=6, max_size=6))
    value = dtype(data.draw(strategies.zero_points(dtype)))
    constants = [np.array(pads, np.int64), value] if mode == "constant" else [np.array(pads)]
    np.testing.assert_array_equal(
        execute("Pad", [x, *constants], dtype, mode=mode), bigint.pad(x, pads, value, mode)
    )


@halved
@given(strategies.floats((3, 17), 30.0), st.sampled_from(["both", "positive", "zero"]))
def test_dynamic_quantize(x: Array, kind: str) -> None:
    x = {"both": x, "positive": np.abs(x), "zero": np.zeros_like(x)}[kind]
    node = onnx.helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"])
    value = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, x.shape)
    outputs = [onnx.ValueInfoProto(name=name) for name in "qsz"]
    graph = onnx.helper.make_graph([node], "g", [value], outputs)
    opsets = [onnx.helper.make_opsetid("", 21)]
    model = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=10)
    y = run_onnxruntime(model, {"x": x}, optimized=False)
    for actual, expected in zip(y.values(), bigint.dynamic_quantize(x), strict=True):
        np.testing.assert_array_equal(actual, expected)


_KERNELS: list[tuple[str, Callable[[Array], Array], dict[str, float]]] = [
    ("Sigmoid", mlas.logistic, {}),
    ("Tanh", mlas.tanh, {}),
    ("Exp", mlas.exp, {}),
    ("Erf", mlas.erf, {}),
    ("HardSigmoid", mlas.hard_sigmoid, {}),
    ("HardSigmoid", lambda x: mlas.hard_sigmoid(x, 1 / 6, 0.5), {"alpha": 1 / 6, "beta": 0.5}),
    ("LeakyRelu", mlas.leaky_relu, {}),
]


@pytest.mark.parametrize(("op_type", "kernel", "attrs"), _KERNELS, ids=[k[0] for k in _KERNELS])
def test_float_kernels(
    op_type: str, kernel: Callable[[Array], Array], attrs: dict[str, Any]
) -> None:
    rng = np.random.default_rng(1)
    parts = [rng.standard_normal(5000) * s for s in (0.01, 0.3, 1.0, 3.0, 8.0, 20.0, 60.0)]
    parts.append(np.array([np.inf, -np.inf, 0.0, -0.0, 18.0, -18.0, 9.0, 0.921875, 1e-40, 88.75]))
    x = np.concatenate(parts).astype(np.float32)
    with np.errstate(over="ignore", under="ignore"):
        np.testing.assert_array_equal(execute(op_type, [x], np.float32, **attrs), kernel(x))


@pytest.mark.parametrize("length", [1, 2, 7, 8, 9, 23, 24, 25, 100])
def test_float_softmax(length: int) -> None:
    x = (np.random.default_rng(length).standard_normal((4, length, 3)) * 5).astype(np.float32)
    for axis in range(3):
        y = execute("Softmax", [x], np.float32, axis=axis)
        # Which kernel onnxruntime takes is the CPU's to say.
        assert any(np.array_equal(y, mlas.softmax(x, axis, lanes=lanes)) for lanes in (8, 16))


@halved
@given(strategies.mover_cases(dtype=np.uint8), st.booleans())
def test_movers_between_equal_parameters_move_codes(
    case: strategies.MoverCase, quantized: bool
) -> None:
    params = u8(0.5, 100)
    held = [Held(value) for value in case.constants]
    x = Fed("x", case.x.shape, params, quantized=quantized)
    model = qdq_model(
        case.op_type, [x, *held], out=params, attrs=case.attrs, results=case.results, opset=21
    )
    onnx.checker.check_model(model, full_check=True)
    fed = case.x if quantized else bigint.dequantize(case.x, *pair(params))
    moved = run_onnxruntime(model, {"x": fed}, optimized=False)["y"]
    if case.results == 1:
        direct = execute(case.op_type, [case.x, *case.constants], np.uint8, **case.attrs)
        np.testing.assert_array_equal(moved, direct)
    assert np.isin(moved, case.x).all()


@pytest.mark.parametrize("params", [s8(0.01, 0), s8(0.01, None), s8([0.01, 0.02], [0, 0], axis=0)])
def test_the_int16_hazard_is_gone_from_optimized_qdq_models(params: Params) -> None:
    w = np.full((2, 8, 3, 3), 127, np.int8)
    x = Fed("x", (1, 8, 6, 6), u8(0.02, 0), quantized=True)
    model = qdq_model("Conv", [x, Held(w, params)], out=u8(2.0, 3))
    feeds = {"x": np.full((1, 8, 6, 6), 255, np.uint8)}
    expected = bigint.qlinear_conv(
        feeds["x"], F32(0.02), np.uint8(0), w, params.scale_array, np.int8(0), F32(2), np.uint8(3)
    )
    for optimized in (False, True):
        y = run_onnxruntime(model, feeds, optimized=optimized)["y"]
        np.testing.assert_array_equal(y, expected)


def test_exact_model_leaves_the_original_and_the_values_alone() -> None:
    x = Fed("x", (1, 4, 5, 5), u8(0.02, 7))
    w = np.arange(-32, 32, dtype=np.int8).reshape(4, 4, 2, 2)
    model = qdq_model("Conv", [x, Held(w, s8(0.01, 3))], out=u8(0.05, 100))
    before = model.SerializeToString()
    changed = exact_model(model)
    assert model.SerializeToString() == before
    onnx.checker.check_model(changed, full_check=True)
    feeds = run_inputs(model)
    plain = run_onnxruntime(expose(model), feeds, optimized=False, exact=False)
    moved = run_onnxruntime(expose(changed), feeds, optimized=False, exact=False)
    for name, value in plain.items():
        np.testing.assert_array_equal(moved[name], value, name)
