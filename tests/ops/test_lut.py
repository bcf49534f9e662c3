"""qnn.lut: every element-wise function of one tensor, against onnxruntime on every code."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import intonnx
from intonnx.importer.float_functions import UNARY
from intonnx.ir.ops.lut import FloatStep, Lut
from intonnx.ir.types import DType, QuantParams, TensorType, plain, quantized
from intonnx.lowering.integer.kernel import Context, kernels
from support import bigint_pointwise, strategies
from support.models import (
    Array,
    Builder,
    Fed,
    Held,
    Params,
    chain_model,
    qdq_model,
    qoperator_model,
    s8,
    s16,
    u8,
    u16,
)
from support.runtime import run_onnxruntime
from support.wings import apart, check_model, refusal_of

# onnxruntime takes these from the C library or from polynomials that differ in the last bits: the
# float32 value may be a few units in the last place away, and so a code next to a tie one quantum.
INEXACT = {"Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Cos", "Cosh", "Sin", "Sinh", "Tan"}
ATTRIBUTES: dict[str, list[dict[str, Any]]] = {
    "Celu": [{}, {"alpha": 0.3}],
    "Elu": [{}, {"alpha": 0.3}],
    "Gelu": [{}, {"approximate": "tanh"}],
    "HardSigmoid": [{}, {"alpha": 0.3, "beta": 0.1}],
    "LeakyRelu": [{}, {"alpha": 0.3}, {"alpha": -0.5}],
    "Selu": [{}, {"alpha": 0.3, "gamma": 2.1}],
    "Shrink": [{}, {"lambd": 1.0, "bias": 0.3}],
    "Swish": [{}, {"alpha": 0.7}],
    "ThresholdedRelu": [{}, {"alpha": 0.3}],
}
CASES = [(op, attrs) for op in UNARY for attrs in ATTRIBUTES.get(op, [{}])]


def every_code(dtype: npt.DTypeLike) -> Array:
    bits = np.dtype(dtype).itemsize * 8
    return np.arange(1 << bits).astype(f"u{bits // 8}").view(dtype)


def newest(op_type: str) -> int:
    return 24 if op_type == "Swish" else 21


def random_params(seed: str, dtype: npt.DTypeLike, low: float, high: float) -> Params:
    rng = np.random.default_rng(zlib.crc32(seed.encode()))
    info = np.iinfo(dtype)
    telling = [info.min, info.max, int(rng.integers(info.min, info.max))]
    scale = np.exp(rng.uniform(np.log(low), np.log(high))) * 256 / 2**info.bits
    return Params(dtype, float(np.float32(scale)), telling[rng.integers(3)])


def quanta_of(op_type: str) -> int:
    return 1 if op_type in INEXACT else 0


def check(model: onnx.ModelProto, x: Array, quanta: int = 0) -> intonnx.Graph:
    return check_model(model, {"x": x}, quanta=quanta, literal_quanta=quanta)


def ops_of(graph: intonnx.Graph) -> list[str]:
    return [node.op.title for node in graph.nodes]


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
    ("constraint", "x", "table", "out", "recipe"),
    [
        ("C1", plain(DType.U8, (3,)), 256, params(), ()),
        ("C1", quantized(params(channels=3), (3,)), 256, params(), ()),
        ("C1", quantized(params(DType.I32), (3,)), 256, params(), ()),
        ("C2", quantized(params(), (3,)), 255, params(), ()),
        ("C2", quantized(params(DType.I16), (3,)), 256, params(), ()),
        ("C2", quantized(params(), (3,)), 256, params(DType.I8), ()),
        ("C3", quantized(params(), (3,)), 256, params(channels=3), ()),
        ("C4", quantized(params(), (3,)), 256, params(), (FloatStep("Abs", (1,)),)),
    ],
)
def test_lut_refuses_c1_to_c4(
    constraint: str, x: TensorType, table: int, out: QuantParams, recipe: tuple[FloatStep, ...]
) -> None:
    with pytest.raises(intonnx.TypeFailure, match=constraint):
        Lut(out=out, recipe=recipe).infer([x, plain(DType.U8, (table,))])


def test_lut_of_c1_to_c4_has_the_shape_of_the_codes() -> None:
    recipe = (FloatStep("Abs", (0,)), FloatStep("Mul", (0, 1)))
    operands = [quantized(params(DType.I16), (3, "n")), plain(DType.U8, (65536,))]
    assert Lut(out=params(), recipe=recipe).infer(operands) == (quantized(params(), (3, "n")),)


# -- one operator ---------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize(("op_type", "attrs"), CASES, ids=lambda case: str(case))
def test_every_operator_on_every_8_bit_code(
    op_type: str, attrs: Mapping[str, Any], dtype: npt.DTypeLike
) -> None:
    seed = f"{op_type}{attrs}{np.dtype(dtype)}"
    x = random_params(seed, dtype, 0.002, 0.5)
    y = random_params(seed + "y", dtype, 0.001, 0.1)
    codes = every_code(dtype)
    model = qdq_model(
        op_type, [Fed("x", (256,), x, quantized=True)], out=y, attrs=attrs, opset=newest(op_type)
    )
    graph = check(model, codes, quanta_of(op_type))
    assert ops_of(graph)[-1] == "qnn.lut"


@pytest.mark.parametrize("make", [u16, s16])
@pytest.mark.parametrize(("op_type", "attrs"), CASES, ids=lambda case: str(case))
def test_every_operator_on_every_16_bit_code(
    op_type: str, attrs: Mapping[str, Any], make: Any
) -> None:
    dtype = make(1).dtype
    seed = f"{op_type}{attrs}{np.dtype(dtype)}"
    x = random_params(seed, dtype, 0.002, 0.5)
    y = random_params(seed + "y", dtype, 0.001, 0.1)
    codes = every_code(dtype)
    model = qdq_model(
        op_type, [Fed("x", (65536,), x, quantized=True)], out=y, attrs=attrs, opset=newest(op_type)
    )
    wanted = run_onnxruntime(model, {"x": codes}, optimized=False)
    graph = intonnx.import_model(model)
    apart(intonnx.compile(graph).run({"x": codes}), wanted, quanta_of(op_type))


@pytest.mark.parametrize("op_type", ["Sigmoid", "LeakyRelu", "Tanh", "Exp", "Gelu"])
@pytest.mark.parametrize(("dtype", "result"), [(np.uint8, np.int8), (np.int16, np.uint8)])
def test_other_storage_in_the_result(
    op_type: str, dtype: npt.DTypeLike, result: npt.DTypeLike
) -> None:
    codes = every_code(dtype)
    x = random_params(op_type, dtype, 0.01, 0.1)
    y = random_params(op_type + "y", result, 0.004, 0.02)
    model = qdq_model(op_type, [Fed("x", codes.shape, x, quantized=True)], out=y)
    check(model, codes)


@settings(max_examples=40)
@given(st.data())
def test_any_parameters(data: st.DataObject) -> None:
    op_type, attrs = data.draw(st.sampled_from(CASES))
    x, y = data.draw(strategies.params()), data.draw(strategies.params())
    codes = every_code(x.dtype)
    model = qdq_model(
        op_type, [Fed("x", (256,), x, quantized=True)], out=y, attrs=attrs, opset=newest(op_type)
    )
    graph = intonnx.import_model(model)
    wanted = run_onnxruntime(model, {"x": codes}, optimized=False)
    apart(intonnx.compile(graph).run({"x": codes}), wanted, quanta_of(op_type))


def test_a_float_input_is_quantized_first() -> None:
    model = qdq_model("Tanh", [Fed("x", (2, 3, 5), s8(0.02, 3))], out=s8(0.008, 0))
    x = np.random.default_rng(0).standard_normal((2, 3, 5)).astype(np.float32)
    assert ops_of(check(model, x)) == ["qnn.quantize", "qnn.lut"]


def test_half_precision_scales() -> None:
    build = Builder()
    codes = build.feed("x", (256,), np.uint8)
    scales = [build.constant(f"s{i}", np.float16(s)) for i, s in enumerate((0.03, 0.007))]
    zero = build.constant("z", np.uint8(120))
    real = build.node("DequantizeLinear", [codes, scales[0], zero])
    value = build.node("Mul", [build.node("Sigmoid", [real]), real])
    build.output(build.node("QuantizeLinear", [value, scales[1], zero], name="y"), np.uint8)
    model = build.model()
    graph = intonnx.import_model(model)
    assert ops_of(graph)[-1] == "qnn.lut"
    x = {"x": every_code(np.uint8)}
    apart(intonnx.compile(graph).run(x), run_onnxruntime(model, x, optimized=False), 0)


# -- chains ---------------------------------------------------------------------------------------

CHAINS: list[Sequence[tuple[str, Mapping[str, Any]]]] = [
    [("Sigmoid", {}), ("Tanh", {})],
    [("Abs", {}), ("Sqrt", {}), ("Neg", {}), ("Exp", {}), ("Reciprocal", {})],
    [("Log", {}), ("Relu", {}), ("Softplus", {})],
    [("LeakyRelu", {"alpha": 0.1}), ("Clip", {}), ("Erf", {}), ("Identity", {}), ("Floor", {})],
    [("HardSigmoid", {}), ("Round", {}), ("Relu", {})],
]


@pytest.mark.parametrize("steps", CHAINS, ids=lambda steps: "-".join(op for op, _ in steps))
@pytest.mark.parametrize(("x", "y"), [(u8(0.03, 128), u8(0.01, 3)), (s8(0.05, -9), s8(0.1, 0))])
def test_a_chain_is_one_table(
    steps: Sequence[tuple[str, Mapping[str, Any]]], x: Params, y: Params
) -> None:
    graph = check(
        chain_model(Fed("x", (4, 64), x, quantized=True), steps, out=y),
        every_code(x.dtype).reshape(4, 64),
    )
    assert ops_of(graph).count("qnn.lut") == 1
    assert set(ops_of(graph)) <= {"qnn.lut", "qnn.storage_cast", "qnn.clip"}


@pytest.mark.parametrize("opset", [10, 11, 13, 21])
def test_clip_in_a_chain_by_attributes_or_inputs(opset: int) -> None:
    build = Builder(opset)
    x = build.operand(Fed("x", (256,), u8(0.05, 128), quantized=True), 0)
    value = build.node("Exp", [x])
    if opset < 11:
        value = build.node("Clip", [value], min=0.25, max=2.0)
    else:
        value = build.node("Clip", [value, "", build.constant("top", np.float32(2))])
    value = build.node("Log", [value])
    build.output(build.quantize(value, u8(0.013, 90), "y"), np.uint8)
    graph = check(build.model(), every_code(np.uint8))
    assert ops_of(graph) == ["qnn.storage_cast", "qnn.lut"]


def silu(build: Builder, x: str) -> str:
    return build.node("Mul", [x, build.node("Sigmoid", [x])])


def hard_swish(build: Builder, x: str) -> str:
    three, zero, six = (build.constant(f"k{v}", np.float32(v)) for v in (3, 0, 6))
    top = build.node("Clip", [build.node("Add", [x, three]), zero, six])
    return build.node("Mul", [build.node("Mul", [x, top]), build.constant("k", np.float32(1 / 6))])


def gelu(build: Builder, x: str) -> str:
    inner = build.node("Mul", [x, build.constant("r", np.float32([2**-0.5]))])
    one = build.constant("one", np.float32(1))
    grown = build.node("Add", [build.node("Erf", [inner]), one])
    half = build.node("Mul", [x, build.constant("half", np.float32([[0.5]]))])
    return build.node("Mul", [half, grown])


def square_of_shifted(build: Builder, x: str) -> str:
    moved = build.node("Sub", [build.constant("one", np.float32(1)), x])
    return build.node("Mul", [moved, moved])


@pytest.mark.parametrize("make", [silu, hard_swish, gelu, square_of_shifted])
@pytest.mark.parametrize(("x", "y"), [(u8(0.03, 128), u8(0.02, 3)), (s8(0.05, -9), s8(0.03, -90))])
def test_a_diamond_is_one_table(make: Any, x: Params, y: Params) -> None:
    build = Builder()
    start = build.operand(Fed("x", (16, 16), x, quantized=True), 0)
    build.output(build.quantize(make(build, start), y, "y"), y.dtype)
    graph = check(build.model(), every_code(x.dtype).reshape(16, 16))
    assert ops_of(graph) == ["qnn.storage_cast", "qnn.lut"]


def test_a_dequantize_for_each_reader_is_one_tensor_still() -> None:
    build = Builder()
    codes = build.feed("x", (256,), np.uint8)
    reals = [build.dequantize(codes, u8(0.03, 128), f"real{i}") for i in (0, 1)]
    value = build.node("Mul", [reals[0], build.node("Sigmoid", [reals[1]])])
    build.output(build.quantize(value, u8(0.02, 10), "y"), np.uint8)
    assert ops_of(check(build.model(), every_code(np.uint8)))[-1] == "qnn.lut"


def test_two_quantizers_are_two_tables() -> None:
    build = Builder()
    x = build.operand(Fed("x", (256,), u8(0.03, 128), quantized=True), 0)
    value = build.node("Exp", [x])
    build.output(build.quantize(value, u8(0.02, 0), "y"), np.uint8)
    build.output(build.quantize(value, s8(0.5, -7), "z"), np.int8)
    assert ops_of(check(build.model(), every_code(np.uint8))).count("qnn.lut") == 2


def test_a_value_inside_a_chain_may_be_quantized_too() -> None:
    build = Builder()
    x = build.operand(Fed("x", (256,), u8(0.03, 128), quantized=True), 0)
    inner = build.node("Sigmoid", [x])
    build.output(build.quantize(inner, u8(1 / 256, 0), "y"), np.uint8)
    build.output(build.quantize(build.node("Log", [inner]), u8(0.01, 250), "z"), np.uint8)
    assert ops_of(check(build.model(), every_code(np.uint8))).count("qnn.lut") == 2


def test_a_float_reader_keeps_the_float_operator() -> None:
    build = Builder()
    x = build.operand(Fed("x", (256,), u8(0.03, 128), quantized=True), 0)
    value = build.node("Sigmoid", [x], name="s")
    build.output(build.quantize(value, u8(1 / 256, 0), "y"), np.uint8)
    build.output("s", np.float32)
    model = build.model()
    assert refusal_of(model, "Sigmoid")[0] == "float-result-used"
    graph, codes = intonnx.import_model(model), {"x": every_code(np.uint8)}
    wanted = run_onnxruntime(model, codes, optimized=False)
    found = intonnx.compile(graph).run(codes)
    apart({"y": found["y"]}, {"y": wanted["y"]}, 0)
    np.testing.assert_allclose(found["s"], wanted["s"], atol=1e-7)
    assert "qnn.lut" in ops_of(graph)


@pytest.mark.parametrize(
    ("op_type", "first", "scalar", "quanta"),
    [
        ("Div", True, 0.3, 0),
        ("Div", False, 0.3, 0),
        ("Pow", True, 2.0, 0),
        ("Pow", True, 3.0, 0),
        ("Pow", True, 0.5, 1),
        ("Pow", True, -1.0, 1),
        ("Pow", False, 2.0, 1),
        ("PRelu", True, [-0.3], 0),
        ("Min", True, 0.3, 0),
        ("Max", False, [[0.3]], 0),
        ("Sum", True, 0.3, 0),
    ],
)
def test_a_scalar_on_the_other_side(op_type: str, first: bool, scalar: Any, quanta: int) -> None:
    # Pow by 2 and 3 is products, else the C library's, which is not always correctly rounded.
    x = Fed("x", (4, 64), s8(0.05, -9), quantized=True)
    operands = [x, Held(np.float32(scalar))]
    model = qdq_model(op_type, operands if first else operands[::-1], out=s8(0.1, 3))
    graph = check(model, every_code(np.int8).reshape(4, 64), quanta)
    assert ops_of(graph) == ["qnn.storage_cast", "qnn.lut"]


def test_pow_with_a_whole_exponent() -> None:
    x = Fed("x", (256,), u8(0.05, 128), quantized=True)
    check(qdq_model("Pow", [x, Held(np.int64(2))], out=u8(0.1, 3)), every_code(np.uint8))


def test_a_scalar_behind_a_dequantize() -> None:
    x = Fed("x", (256,), u8(0.05, 128), quantized=True)
    model = qdq_model("PRelu", [x, Held(np.array([25]), u8(0.01))], out=u8(0.1, 3))
    check(model, every_code(np.uint8))


# -- what stays float -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("x", "code"),
    [
        (Fed("x", (3, 4)), "input-not-quantized"),
        (Fed("x", (3, 4), u8([0.1, 0.2, 0.3], [0, 0, 0], axis=0)), "per-axis-input"),
        (Fed("x", (3, 4), Params(np.int32, 0.1, 0), quantized=True), "input-not-quantized"),
    ],
)
def test_refusals_for_the_input(x: Fed, code: str) -> None:
    found, detail = refusal_of(qdq_model("Tanh", [x], out=u8(0.1)), "Tanh")
    assert found == code
    assert "'x" in detail


def test_refusals_for_the_result() -> None:
    x = Fed("x", (3, 4), u8(0.1, 3))
    assert refusal_of(qdq_model("Tanh", [x]), "Tanh")[0] == "output-not-quantized"
    model = qdq_model("Tanh", [x], out=u8([0.1, 0.2, 0.3], [0, 0, 0], axis=0))
    assert refusal_of(model, "Tanh")[0] == "unsupported-attribute"


def test_two_tensors_are_no_table() -> None:
    build = Builder()
    sides = [build.operand(Fed(name, (8,), u8(0.1, 3)), 0) for name in "ab"]
    value = build.node("Tanh", [build.node("Add", sides)])
    build.output(build.quantize(value, u8(0.1), "y"), np.uint8)
    code, detail = refusal_of(build.model(), "Tanh")
    assert code == "input-not-quantized"
    assert "'a_q'" in detail
    assert "'b_q'" in detail


def test_several_tensors_at_one_operator_are_no_table() -> None:
    sides = [Fed(name, (8,), u8(0.1, 3)) for name in "abc"]
    code, detail = refusal_of(qdq_model("Sum", sides, out=u8(0.1)), "Sum")
    assert code == "no-integer-form"
    assert "'a_q' and 'b_q'" in detail


@pytest.mark.parametrize(("shape", "rank"), [((4,), 2), ((1, 1, 1), 2)])
def test_constants_that_are_no_scalars_are_no_table(shape: tuple[int, ...], rank: int) -> None:
    build = Builder()
    x = build.operand(Fed("x", (3, 4)[:rank], u8(0.1, 3)), 0)
    moved = build.node("Add", [x, build.constant("c", np.ones(shape, np.float32))])
    build.output(build.quantize(build.node("Tanh", [moved]), u8(0.1), "y"), np.uint8)
    assert refusal_of(build.model(), "Tanh")[0] == "unsupported-attribute"


def test_a_chain_that_is_too_long() -> None:
    steps = [("Neg", {})] * 70
    model = chain_model(Fed("x", (3,), u8(0.1, 3)), steps, out=u8(0.1))
    nodes = intonnx.coverage(intonnx.import_model(model)).nodes
    assert {n.state for n in nodes if n.op == "Neg"} == {"float"}
    assert [n.code for n in nodes if n.op == "Neg"][-1] == "no-integer-form"


# -- QLinear operators and how tables are written -------------------------------------------------


@settings(max_examples=40)
@given(st.data())
def test_qlinear_sigmoid_and_leaky_relu(data: st.DataObject) -> None:
    dtype = data.draw(strategies.storages())
    x, y = data.draw(strategies.params(dtype)), data.draw(strategies.params(dtype))
    sigmoid = data.draw(st.booleans())
    alpha = data.draw(st.sampled_from([0.01, 0.3, 1.5]))
    quantization = (x.scale_array, x.zero_array, y.scale_array, y.zero_array)
    codes = every_code(dtype)
    model = qoperator_model(
        "QLinearSigmoid" if sigmoid else "QLinearLeakyRelu",
        [Fed("x", (256,), dtype=dtype), *quantization],
        dtype,
        attrs=None if sigmoid else {"alpha": alpha},
    )
    graph = check(model, codes)
    wanted = (
        bigint_pointwise.qlinear_sigmoid(codes, *quantization)
        if sigmoid
        else bigint_pointwise.qlinear_leaky_relu(codes, *quantization, alpha)
    )
    np.testing.assert_array_equal(intonnx.compile(graph).run({"x": codes})["y"], wanted)
    assert intonnx.to_onnx(graph).graph.node[-1].op_type == model.graph.node[0].op_type


@pytest.mark.parametrize(
    ("op_type", "form", "runtime", "written"),
    [
        ("Sigmoid", "qlinear", "onnxruntime", ["QLinearSigmoid"]),
        ("LeakyRelu", "qlinear", "onnxruntime", ["QLinearLeakyRelu"]),
        ("Sigmoid", "qlinear", "standard", ["Cast", "Gather"]),
        ("Tanh", "qlinear", "onnxruntime", ["Cast", "Gather"]),
        ("Tanh", "qdq", "onnxruntime", ["DequantizeLinear", "Tanh", "QuantizeLinear"]),
    ],
)
def test_how_a_table_is_written(op_type: str, form: Any, runtime: Any, written: list[str]) -> None:
    x = Fed("x", (256,), s8(0.05, 3), quantized=True)
    model = qdq_model(op_type, [x], out=s8(0.01, -3))
    exported = intonnx.to_onnx(intonnx.import_model(model), form=form, runtime=runtime)
    names = [n.op_type for n in exported.graph.node if n.op_type != "Identity"]
    assert names == written
    codes = {"x": every_code(np.int8)}
    wanted = run_onnxruntime(model, codes, optimized=False)
    for optimized in (False, True):
        apart(run_onnxruntime(exported, codes, optimized=optimized), wanted, 0)


def test_a_table_without_a_recipe_is_gathered_in_every_form() -> None:
    model = qdq_model("Tanh", [Fed("x", (256,), u8(0.05, 128), quantized=True)], out=s8(0.01))
    text = str(intonnx.import_model(model))
    graph = intonnx.import_model(model)
    anonymous = intonnx.parse(
        text.replace('recipe=[["Tanh", [0], []]]', "recipe=[]"), weights=graph.constants
    )
    assert anonymous != graph
    codes = {"x": every_code(np.uint8)}
    wanted = run_onnxruntime(model, codes, optimized=False)
    for form in ("qlinear", "qdq"):
        apart(run_onnxruntime(intonnx.to_onnx(anonymous, form), codes, optimized=True), wanted, 0)


def test_the_text_form_keeps_the_recipe() -> None:
    build = Builder()
    x = build.operand(Fed("x", (256,), s8(0.05, 3), quantized=True), 0)
    bounds = [build.constant("low", np.float32(-np.inf)), build.constant("high", np.float32(0.7))]
    value = build.node("Clip", [build.node("Elu", [x], alpha=0.3), *bounds])
    value = build.node("Gelu", [value], approximate="tanh")
    build.output(build.quantize(value, s8(0.01), "y"), np.int8)
    graph = check(build.model(), every_code(np.int8))
    again = intonnx.parse(str(graph), weights=graph.constants)
    assert again == graph
    op = again.nodes[-1].op
    assert isinstance(op, Lut)
    recipe = op.recipe
    assert [step.op_type for step in recipe] == ["Elu", "Clip", "Gelu"]
    assert recipe[1].operands == (1, float("-inf"), float(np.float32(0.7)))


@pytest.mark.parametrize("make", [u8, s8, u16])
def test_channels_last_memory_stays_so(make: Any) -> None:
    x = Fed("x", (2, 5, 6, 6), make(0.05, 100), quantized=True)
    graph = intonnx.import_model(qdq_model("Tanh", [x], out=u8(0.01)))
    node = graph.nodes[-1]
    table = graph.constants[node.operands[1]]
    types = tuple(graph.operand_types(node))
    context = Context(operands=types, results=(), constants=(None, table), numerics="qlinear")
    codes = np.zeros((2, 6, 6, 5), x.params.dtype if x.params else None).transpose(0, 3, 1, 2)
    (found,) = kernels.build(node, context)([codes, table])
    assert np.argsort(found.strides).tolist() == np.argsort(codes.strides).tolist()
