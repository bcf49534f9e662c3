"""Quantize, dequantize, requantize, dynamic quantize: constraints; onnxruntime bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import intonnx
from intonnx.ir.errors import TypeFailure
from intonnx.ir.op import Op
from intonnx.ir.ops.quantize import Dequantize, DynamicQuantize, Quantize, Requantize
from intonnx.ir.types import DType, QuantParams, TensorType, plain, quantized
from support import strategies
from support.float32 import limits
from support.models import Array, Builder, Params, s8, s32, u8, u16
from support.runtime import run_onnxruntime
from support.wings import Arrays, apart, check_model, refusal_of

U8 = QuantParams(storage=DType.U8, scale=0.5, zero_point=128)
HALF = QuantParams(storage=DType.I8, scale=0.5, zero_point=0, expressed=DType.F16)
BLOCKS = QuantParams(
    storage=DType.I8, scale=[[1, 2], [3, 4]], zero_point=[[0, 0], [0, 0]], axis=1, block=3
)
AXIS = QuantParams(storage=DType.I8, scale=[1, 2, 3], zero_point=[0, 0, 0], axis=1)
FLOAT = plain(DType.F32, ("N", 3))


@pytest.mark.parametrize(
    ("op", "operand", "results"),
    [
        (Quantize(out=U8), FLOAT, [quantized(U8, ("N", 3))]),
        (Quantize(out=AXIS), FLOAT, [quantized(AXIS, ("N", 3))]),
        (Quantize(out=AXIS), plain(DType.F16, ("N", "C")), [quantized(AXIS, ("N", "C"))]),
        (Quantize(out=AXIS), plain(DType.F32, None), [quantized(AXIS, None)]),
        (Dequantize(), quantized(AXIS, (2, 3)), [plain(DType.F32, (2, 3))]),
        (Dequantize(), quantized(HALF, ()), [plain(DType.F16, ())]),
        (Requantize(out=U8), quantized(AXIS, (2, 3)), [quantized(U8, (2, 3))]),
        (
            DynamicQuantize(),
            FLOAT,
            [plain(DType.U8, ("N", 3)), plain(DType.F32, ()), plain(DType.U8, ())],
        ),
    ],
)
def test_result_types(op: Op, operand: TensorType, results: list[TensorType]) -> None:
    assert list(op.infer([operand])) == results


@pytest.mark.parametrize(
    ("op", "constraint", "operand"),
    [
        pytest.param(Quantize(out=U8), "C1", plain(DType.I32, (2,)), id="quantize_c1"),
        pytest.param(Quantize(out=U8), "C1", quantized(U8, (2,)), id="quantize_c1_codes"),
        pytest.param(Quantize(out=AXIS), "C2", plain(DType.F32, (2,)), id="quantize_c2_rank"),
        pytest.param(Quantize(out=AXIS), "C2", plain(DType.F32, (2, 4)), id="quantize_c2_length"),
        pytest.param(Quantize(out=BLOCKS), "C2", plain(DType.F32, (2, 7)), id="quantize_c2_blocks"),
        pytest.param(
            Requantize(out=BLOCKS), "C2", quantized(U8, (3, 6)), id="requantize_c2_blocks"
        ),
        pytest.param(Dequantize(), "C1", FLOAT, id="dequantize_c1"),
        pytest.param(Dequantize(), "C1", plain(DType.U8, (2,)), id="dequantize_c1_plain"),
        pytest.param(Requantize(out=U8), "C1", FLOAT, id="requantize_c1"),
        pytest.param(Requantize(out=AXIS), "C2", quantized(U8, (2,)), id="requantize_c2_rank"),
        pytest.param(Requantize(out=AXIS), "C2", quantized(U8, (2, 4)), id="requantize_c2_length"),
        pytest.param(DynamicQuantize(), "C1", plain(DType.F16, ()), id="dynamic_quantize_c1"),
    ],
)
def test_constraints(op: Op, constraint: str, operand: TensorType) -> None:
    with pytest.raises(TypeFailure, match=f"^{op.name} {constraint}: ") as caught:
        op.infer([operand])
    assert caught.value.constraint == constraint


@pytest.mark.parametrize("op", [Quantize(out=U8), Dequantize(), Requantize(out=U8)])
def test_c0_the_operand_is_given(op: Op) -> None:
    with pytest.raises(TypeFailure, match="C0: operand 0 is missing"):
        op.infer([None])


# -- against onnxruntime --------------------------------------------------------------------------

SPECIAL = np.array(
    [np.inf, -np.inf, np.nan, 0.0, -0.0, 3e38, -3e38, 1e-45, 6.5e4, -7e4], np.float32
)
RNG = np.random.default_rng(0)


def exact(model: onnx.ModelProto, inputs: Arrays, *, again: bool = True) -> intonnx.Graph:
    """No difference anywhere: both numerics, both forms, and a second import."""
    graph = intonnx.import_model(model)
    with np.errstate(over="ignore"):
        wanted = run_onnxruntime(model, inputs, optimized=False)
    for numerics in ("qlinear", "qdq"):
        apart(intonnx.compile(graph, numerics=numerics).run(inputs), wanted, 0)
    for form in ("qlinear", "qdq"):
        exported = intonnx.to_onnx(graph, form=form)  # type: ignore[arg-type]
        apart(run_onnxruntime(exported, inputs, optimized=False), wanted, 0)
        if again:
            apart(intonnx.compile(intonnx.import_model(exported)).run(inputs), wanted, 0)
    return graph


def around(scale: Array, zero: Array) -> Array:
    """Real values on, between and beyond the codes, ties among them: [rows, scales]."""
    low, high = limits(zero.dtype)
    codes = np.unique([*range(low, min(low + 300, high)), *range(high - 300, high + 9), low - 9])
    steps = (codes[:, None] - zero.astype(np.int64).reshape(-1)) * np.float32(1)
    steps = np.concatenate([steps, steps + np.float32(0.5)])
    with np.errstate(over="ignore"):
        real = (steps * scale.reshape(-1)).astype(np.float32)
    return np.concatenate([real, np.broadcast_to(SPECIAL[:, None], (SPECIAL.size, real.shape[1]))])


def both(params: Params, shape: tuple[int, ...], opset: int = 21, **attributes: Any) -> Builder:
    """x -> Q -> DQ with the codes and the reals as outputs."""
    build = Builder(opset)
    build.feed("x", shape, np.float32)
    given_parameters = [params.scale_array, params.zero_array]
    names = [build.constant(n, a) for n, a in zip(("s", "z"), given_parameters, strict=True)]
    build.output(build.node("QuantizeLinear", ["x", *names], name="q", **attributes), params.dtype)
    build.output(build.node("DequantizeLinear", ["q", *names], name="y", **attributes), np.float32)
    return build


@given(strategies.params(wide=True))
@settings(max_examples=60)
def test_quantize_and_dequantize(params: Params) -> None:
    x = around(params.scale_array, params.zero_array)
    exact(both(params, x.shape).model(), {"x": x})


@pytest.mark.parametrize("scale", [1e-45, 1e-38, 1e-30, 1e30, 3e38])
@pytest.mark.parametrize("make", [u8, s8, u16])
def test_extreme_scales(scale: float, make: Any) -> None:
    params = make(scale, 3)
    x = around(params.scale_array, params.zero_array)
    exact(both(params, x.shape).model(), {"x": x})


@given(st.data())
@settings(max_examples=40)
def test_per_axis(data: st.DataObject) -> None:
    kind = data.draw(strategies.storages(wide=True))
    params = data.draw(strategies.axis_params(3, 1, kind, symmetric=False))
    x = around(params.scale_array, params.zero_array)
    axis = data.draw(st.integers(-3, 2))
    shape = [1, 1, 1]
    shape[axis] = 3
    x = np.stack([x[:, i] for i in range(3)], axis=0).reshape(*shape[:1], *shape[1:], -1)
    model = both(params, x.shape, axis=axis if axis >= 0 else axis - 1).model()
    exact(model, {"x": x})


@pytest.mark.parametrize("opset", [10, 12, 13, 19, 21, 23])
@pytest.mark.parametrize("shape", [(), (1,)])
def test_every_opset_and_scales_of_one_element(opset: int, shape: tuple[int, ...]) -> None:
    params = u8(np.full(shape, 0.1), np.full(shape, 7))
    x = around(params.scale_array, params.zero_array)
    exact(both(params, x.shape, opset).model(), {"x": x})


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint16, np.int16])
@pytest.mark.parametrize("scale", [0.02, 1.0, 6e-8, 6e-5, 300.0, 65504.0])
def test_float16_scales(dtype: Any, scale: float) -> None:
    low, high = limits(dtype)
    every = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    for zero in (low, high, (low + high + 1) // 2):
        build = Builder()
        build.feed("x", every.shape, np.float16)
        names = ["x", build.constant("s", np.float16(scale)), build.constant("z", dtype(zero))]
        build.output(build.node("QuantizeLinear", names, name="q"), dtype)
        build.output(build.node("DequantizeLinear", ["q", *names[1:]], name="y"), np.float16)
        exact(build.model(), {"x": every})


def test_float16_per_axis() -> None:
    build = Builder()
    build.feed("x", (4, 3, 50), np.float16)
    scale, zero = np.array([0.1, 0.02, 3], np.float16), np.array([3, 0, 255], np.uint8)
    names = ["x", build.constant("s", scale), build.constant("z", zero)]
    build.output(build.node("QuantizeLinear", names, name="q", axis=1), np.uint8)
    y = build.node("DequantizeLinear", ["q", *names[1:]], name="y", axis=1)
    build.output(y, np.float16)
    exact(build.model(), {"x": (RNG.standard_normal((4, 3, 50)) * 9).astype(np.float16)})


def by_float16(x: Array, dtype: Any, scale: float, **attributes: Any) -> onnx.ModelProto:
    build = Builder(opset=23)
    build.feed("x", x.shape, x.dtype)
    names = ["x", build.constant("s", np.float16(scale)), build.constant("z", dtype(3))]
    build.output(build.node("QuantizeLinear", names, name="q", **attributes), dtype)
    return build.model()


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_a_float32_division_by_a_float16_scale(dtype: Any) -> None:
    x = (RNG.standard_normal(5000) * 9).astype(dtype)
    exact(by_float16(x, np.uint8, 0.1, precision=onnx.TensorProto.FLOAT), {"x": x})


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_a_float16_division_is_one_code_off_at_most(dtype: Any) -> None:
    x = (RNG.standard_normal(5000) * 9).astype(dtype)
    model = by_float16(x, np.uint8, 0.1)
    graph = intonnx.import_model(model)
    found = intonnx.compile(graph).run({"x": x})
    apart(found, run_onnxruntime(model, {"x": x}, optimized=False), 1)
    apart(run_onnxruntime(intonnx.to_onnx(graph), {"x": x}, optimized=False), found, 0)


@pytest.mark.parametrize(("dtype", "scale"), [(np.uint16, 0.1), (np.uint8, 1000.0)])
def test_a_float16_division_that_loses_codes_is_refused(dtype: Any, scale: float) -> None:
    code, detail = refusal_of(by_float16(np.zeros(5, np.float32), dtype, scale), "QuantizeLinear")
    assert code == "unsupported-type"
    assert "the division is not in float32" in detail


@pytest.mark.parametrize("dtype", [np.uint8, np.int16])
def test_without_a_zero_point(dtype: Any) -> None:
    build = Builder()
    build.feed("x", (600,), np.float32)
    scale = build.constant("s", np.float32(0.5))
    kind = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    output_dtype = {} if dtype is np.uint8 else {"output_dtype": kind}
    build.output(build.node("QuantizeLinear", ["x", scale], name="q", **output_dtype), dtype)
    build.output(build.node("DequantizeLinear", ["q", scale], name="y"), np.float32)
    exact(build.model(), {"x": np.arange(-300, 300).astype(np.float32) / 3})


@pytest.mark.parametrize("zero", [0, 4000, -4000])
@pytest.mark.parametrize("scale", [0.001, 1e-30, 1e30])
def test_dequantize_int32_with_a_zero_point(zero: int, scale: float) -> None:
    model = Builder()
    model.feed("x", (8,), np.int32)
    model.output(model.dequantize("x", s32(scale, zero), "y"), np.float32)
    x = np.array(
        [0, 1, -1, 1 << 24, (1 << 24) + 1, (1 << 30) + 63, -(1 << 31) + 5000, 77], np.int32
    )
    exact(model.model(), {"x": x})


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", [np.uint8, np.int16])
def test_blocks(axis: int, dtype: Any) -> None:
    build = Builder()
    build.feed("x", (4, 6), np.float32)
    shape = (2, 6) if axis == 0 else (4, 2)
    scale = RNG.uniform(0.01, 1, shape).astype(np.float32)
    zero = RNG.integers(0, 100, shape).astype(dtype)
    names = [build.constant("s", scale), build.constant("z", zero)]
    attributes = {"axis": axis, "block_size": 2 if axis == 0 else 3}
    build.output(build.node("QuantizeLinear", ["x", *names], name="q", **attributes), dtype)
    build.output(build.node("DequantizeLinear", ["q", *names], name="y", **attributes), np.float32)
    exact(build.model(), {"x": (RNG.standard_normal((4, 6)) * 20).astype(np.float32)})


@pytest.mark.parametrize("kind", ["INT4", "UINT4"])
def test_four_bit_codes(kind: str) -> None:
    build = Builder()
    build.feed("x", (64,), np.float32)
    scale = build.constant("s", np.float32(0.5))
    zero = onnx.helper.make_tensor("z", getattr(onnx.TensorProto, kind), [], [3])
    build.constants.append(zero)
    q = build.node("QuantizeLinear", ["x", scale, "z"], name="q")
    build.output(build.node("DequantizeLinear", [q, scale, "z"], name="y"), np.float32)
    exact(build.model(), {"x": np.arange(-32, 32).astype(np.float32) / 4})


@pytest.mark.parametrize(("scale", "out"), [(np.float16, np.float32), (np.float32, np.float16)])
def test_dequantize_to_another_float_type(scale: Any, out: Any) -> None:
    build = Builder(opset=23)
    build.feed("x", (256,), np.uint8)
    names = ["x", build.constant("s", scale(0.1)), build.constant("z", np.uint8(3))]
    kind = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(out))
    build.output(build.node("DequantizeLinear", names, name="y", output_dtype=kind), out)
    exact(build.model(), {"x": np.arange(256, dtype=np.uint8)}, again=scale is np.float16)


# -- requantize -----------------------------------------------------------------------------------


def from_codes(x: Params, out: Params, shape: tuple[int, ...], opset: int = 21) -> onnx.ModelProto:
    build = Builder(opset)
    build.feed("x", shape, x.dtype)
    build.output(build.quantize(build.dequantize("x", x), out, "y"), out.dtype)
    return build.model()


@given(strategies.binary_cases(mixed=True))
def test_requantize_is_dequantize_then_quantize(case: strategies.BinaryCase) -> None:
    x, out = case.a_params, case.out
    low, high = limits(x.dtype)
    codes = np.arange(low, high + 1).astype(x.dtype)
    graph = exact(from_codes(x, out, codes.shape), {"x": codes})
    assert not [node for node in graph.nodes if isinstance(node.op, Dequantize | Quantize)]


@given(st.data())
@settings(max_examples=40)
def test_requantize_per_axis(data: st.DataObject) -> None:
    kinds = [data.draw(strategies.storages(wide=True)) for _ in range(2)]
    x, out = (data.draw(strategies.axis_params(3, 1, kind, symmetric=False)) for kind in kinds)
    codes = data.draw(strategies.codes(kinds[0], (2, 3, 40)))
    exact(from_codes(x, out, codes.shape), {"x": codes})
    exact(from_codes(x, u8(0.5, 3), codes.shape), {"x": codes})
    exact(from_codes(Params(kinds[0], 0.25, 3), out, codes.shape), {"x": codes})


@pytest.mark.parametrize("zero", [0, 5, -4000])
@pytest.mark.parametrize("optimized", [False, True])
def test_requantize_int32(zero: int, optimized: bool) -> None:
    x = RNG.integers(-100000, 100000, (5, 200)).astype(np.int32)
    model = from_codes(s32(0.0013, zero), u8(0.37, 100), x.shape)
    graph = intonnx.import_model(model)
    wanted = run_onnxruntime(model, {"x": x}, optimized=False)
    apart(intonnx.compile(graph, numerics="qdq").run({"x": x}), wanted, 0)
    found = intonnx.compile(graph).run({"x": x})
    apart(found, wanted, 1)
    exported = intonnx.to_onnx(graph)
    apart(run_onnxruntime(exported, {"x": x}, optimized=optimized), found, 0)


def test_requantize_int32_per_axis() -> None:
    x = RNG.integers(-100000, 100000, (5, 3, 40)).astype(np.int32)
    per_axis = s32([0.001, 0.0002, 0.003], [0, 7, -9], axis=1)
    check_model(from_codes(per_axis, u8(0.37, 100), x.shape), {"x": x}, kernel=False)


def test_requantize_int32_in_blocks() -> None:
    build = Builder()
    build.feed("x", (4, 6), np.int32)
    scale = RNG.uniform(0.001, 0.01, (4, 2)).astype(np.float32)
    names = ["x", build.constant("s", scale), build.constant("z", np.zeros((4, 2), np.int32))]
    real = build.node("DequantizeLinear", names, axis=1, block_size=3)
    build.output(build.quantize(real, u8(0.1, 100), "y"), np.uint8)
    exact(build.model(), {"x": RNG.integers(-9999, 9999, (4, 6)).astype(np.int32)}, again=False)


# -- dynamic quantize -----------------------------------------------------------------------------


def dynamic_model(shape: tuple[int, ...]) -> onnx.ModelProto:
    build = Builder()
    build.feed("x", shape, np.float32)
    build.node("DynamicQuantizeLinear", ["x"], name="q", results=3)
    for name, dtype in (("q", np.uint8), ("q_1", np.float32), ("q_2", np.uint8)):
        build.output(name, dtype)
    return build.model()


@given(st.data())
def test_dynamic_quantize(data: st.DataObject) -> None:
    shape = data.draw(st.sampled_from([(), (1,), (7,), (3, 5), (2, 3, 4)]))
    x = data.draw(strategies.floats(shape, data.draw(st.sampled_from([1e-38, 0.1, 4.0, 1e30]))))
    x = np.asarray(x + np.float32(data.draw(st.sampled_from([0.0, 0.0, 5.0, -5.0]))))
    exact(dynamic_model(x.shape), {"x": x})


@pytest.mark.parametrize(
    "x",
    [
        [],
        [0.0, 0.0],
        [-0.0],
        [5.0],
        [-5.0],
        [255.0, 127.5, 0.5, 1.5, 2.5],
        [-1.0, 254.0],
        [1e-38],
        [1e-42, -3e-43],
        [1e-43, 5e-44, 0.0],
        [1e-45],
        [1e-45, -1e-45],
        [3e38, -1.0],
        [3e38, -3e38],
        [3.4e38, -3.4e38, 1.0],
        [np.inf, 1.0],
        [-np.inf, 1.0],
        [np.inf, -np.inf],
        [np.nan],
        [1.0, np.nan],
        [np.nan, 1.0, -3.0],
    ],
)
def test_dynamic_quantize_edges(x: list[float]) -> None:
    array = np.array(x, np.float32)
    exact(dynamic_model(array.shape), {"x": array})
