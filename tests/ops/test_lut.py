"""qnn.lut: every element-wise function of one tensor, against onnxruntime on every code."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import intonnx
from intonnx.importer.float_functions import UNARY
from intonnx.ir.ops.lut import Lut
from intonnx.lowering.integer.kernel import Context, kernels
from support import bigint_pointwise, strategies
from support.models import (
    Builder,
    Fed,
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
from support.tables import check, every_code, ops_of
from support.wings import apart, refusal_of

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


@pytest.mark.parametrize(
    ("shape", "rank", "code"),
    [((4,), 2, "input-not-quantized"), ((1, 1, 1), 2, "unsupported-attribute")],
)
def test_constants_that_are_no_scalars_are_no_table(
    shape: tuple[int, ...], rank: int, code: str
) -> None:
    build = Builder()
    x = build.operand(Fed("x", (3, 4)[:rank], u8(0.1, 3)), 0)
    moved = build.node("Add", [x, build.constant("c", np.ones(shape, np.float32))])
    build.output(build.quantize(build.node("Tanh", [moved]), u8(0.1), "y"), np.uint8)
    assert refusal_of(build.model(), "Tanh")[0] == code


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


@pytest.mark.parametrize("shape", [(2048,), (3, 4, 200), ("N", 4, 5, 6), ("N", "M", 7)])
def test_large_tensors_are_looked_up_with_gather_elements(shape: tuple[int | str, ...]) -> None:
    model = qdq_model("Tanh", [Fed("x", shape, s8(0.05, 3), quantized=True)], out=s8(0.01, -3))
    for cpu in ("x86", "arm"):
        exported = intonnx.to_onnx(intonnx.import_model(model), cpu=cpu)
        assert "GatherElements" in [node.op_type for node in exported.graph.node]
        sizes = [size if isinstance(size, int) else 11 for size in shape]
        codes = {"x": np.resize(every_code(np.int8), sizes)}
        wanted = run_onnxruntime(model, codes, optimized=False)
        for optimized in (False, True):
            apart(run_onnxruntime(exported, codes, optimized=optimized), wanted, 0)
