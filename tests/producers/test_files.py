"""Whole files as producers write them: local functions, external data, opset imports, domains."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import intonnx
from intonnx.ir.errors import CompileFailure
from support.models import Array, Builder, s8, u8
from support.runtime import run_onnxruntime
from support.wings import apart

F32 = np.float32
RNG = np.random.default_rng(5)
CODES = RNG.integers(-127, 128, (6, 4)).astype(np.int8)
INPUT = {"x": RNG.normal(0, 1, (3, 6)).astype(F32)}


def dense_model(build: Builder | None = None) -> onnx.ModelProto:
    """Q -> DQ -> MatMul -> Q."""
    build = build or Builder(17)
    x = build.feed("x", (3, 6), F32)
    x = build.dequantize(build.quantize(x, u8(0.02, 120)), u8(0.02, 120))
    w = build.dequantize(build.constant("w", CODES), s8(0.01, 0))
    build.output(build.quantize(build.node("MatMul", [x, w]), s8(0.03, 7), "y"), np.int8)
    return build.model()


def integer(graph: intonnx.Graph) -> bool:
    return intonnx.coverage(graph).float == 0


def test_unused_opset_imports_are_ignored() -> None:
    """Exporters import all that they might use; onnxruntime adds its internal domains."""
    model = dense_model()
    for domain in ("com.microsoft.nchwc", "ai.onnx.ml", "pkg.onnxscript.torch_lib", "unknown"):
        model.opset_import.append(helper.make_opsetid(domain, 5))
    graph = intonnx.import_model(model)
    assert integer(graph)
    exported = intonnx.to_onnx(graph)
    assert {entry.domain for entry in exported.opset_import} == {""}


def test_external_data(tmp_path: Path) -> None:
    model = dense_model()
    wanted = run_onnxruntime(model, INPUT, optimized=False)
    onnx.save(model, tmp_path / "model.onnx", save_as_external_data=True, location="model.data",
              size_threshold=0)  # fmt: skip
    assert (tmp_path / "model.data").stat().st_size >= CODES.nbytes
    graph = intonnx.import_model(tmp_path / "model.onnx")
    assert integer(graph)
    apart(intonnx.compile(graph).run(INPUT), wanted, 1)


def function_model() -> onnx.ModelProto:
    """A quantized layer as a local function with inputs, an attribute and a nested function."""
    opset = [helper.make_opsetid("", 21), helper.make_opsetid("quant", 1)]
    nested = helper.make_function(
        "quant", "FakeQuantize", ["v", "scale", "zero"], ["out"],
        [helper.make_node("QuantizeLinear", ["v", "scale", "zero"], ["q"]),
         helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["out"])],
        opset,
    )  # fmt: skip
    axis = onnx.AttributeProto(name="axis", ref_attr_name="axis", type=onnx.AttributeProto.INT)
    weights = helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["real_w"])
    weights.attribute.append(axis)
    layer = helper.make_function(
        "quant", "QMatMul", ["x", "w", "ws", "wz", "xs", "xz"], ["y"],
        [helper.make_node("FakeQuantize", ["x", "xs", "xz"], ["real_x"], domain="quant"),
         weights,
         helper.make_node("MatMul", ["real_x", "real_w"], ["y"])],
        opset,
        attributes=["axis"],
    )  # fmt: skip
    build = Builder(21)
    build.feed("x", (3, 6), F32)
    names = [
        build.constant("w", CODES),
        build.constant("ws", RNG.uniform(0.01, 0.02, 4).astype(F32)),
        build.constant("wz", np.zeros(4, np.int8)),
        build.constant("xs", F32(0.02)),
        build.constant("xz", np.int8(3)),
    ]
    value = build.node("QMatMul", ["x", *names], domain="quant", axis=1)
    value = build.node("FakeQuantize", [value, build.constant("ys", F32(0.05)), "xz"],
                       name="y", domain="quant")  # fmt: skip
    build.output(value, F32)
    model = build.model(infer=False)
    model.graph.output[0].type.CopyFrom(helper.make_tensor_type_proto(TensorProto.FLOAT, [3, 4]))
    model.opset_import.append(helper.make_opsetid("quant", 1))
    model.functions.extend([nested, layer])
    return model


def test_local_functions() -> None:
    """onnx-quantize, and every exporter that goes by onnxscript."""
    model = function_model()
    graph = intonnx.import_model(model)
    assert integer(graph)
    assert [node.op.name for node in graph.nodes] == [
        "qnn.quantize", "qnn.dense", "qnn.requantize", "qnn.dequantize"]  # fmt: skip
    found = intonnx.compile(graph).run(INPUT)["y"]
    wanted = run_onnxruntime(model, INPUT, optimized=False)["y"]
    assert np.abs(found - wanted).max() <= 0.05 * 1.0001


# -- domains of producers -----------------------------------------------------------------------

QUARK = {
    "com.amd.quark": ("ExtendedQuantizeLinear", "ExtendedDequantizeLinear"),
    "com.vai.quantize": ("VitisQuantizeLinear", "VitisDequantizeLinear"),
}


@pytest.mark.parametrize("storage", [np.int8, np.uint16, np.int16])
@pytest.mark.parametrize("domain", QUARK)
def test_quantizers_of_quark(domain: str, storage: Any) -> None:
    """The same model with the operators of com.microsoft runs in onnxruntime."""

    def model(own: str, names: tuple[str, str]) -> onnx.ModelProto:
        build = Builder(17)
        x = build.feed("x", (3, 6), F32)
        pair = [build.constant("s", F32(0.01)), build.constant("z", np.asarray(9, storage))]
        x = build.node(names[1], [build.node(names[0], [x, *pair], domain=own), *pair], domain=own)
        scales = [build.constant("ws", RNG.uniform(0.01, 0.02, 4).astype(F32)),
                  build.constant("wz", np.zeros(4, np.int8))]  # fmt: skip
        w = build.node(names[1], [build.constant("w", CODES), *scales], domain=own, axis=1)
        value = build.node("MatMul", [x, w])
        bias = [build.constant("b", np.arange(4, dtype=np.int32)), build.constant("bs", F32(0.1)),
                build.constant("bz", np.int32(0))]  # fmt: skip
        value = build.node("Add", [value, build.node(names[1], bias, domain=own)])
        codes = build.node(names[0], [value, *pair], domain=own)
        build.output(build.node(names[1], [codes, *pair], name="y", domain=own), F32)
        made = build.model(infer=False)
        made.graph.output[0].type.CopyFrom(helper.make_tensor_type_proto(TensorProto.FLOAT, [3, 4]))
        if own not in {entry.domain for entry in made.opset_import}:
            made.opset_import.append(helper.make_opsetid(own, 1))
        return made

    state = RNG.bit_generator.state
    graph = intonnx.import_model(model(domain, QUARK[domain]))
    RNG.bit_generator.state = state
    plain = model("com.microsoft", ("QuantizeLinear", "DequantizeLinear"))
    assert integer(graph)
    wanted = run_onnxruntime(plain, INPUT, optimized=False, exact=False)["y"]
    assert np.abs(intonnx.compile(graph).run(INPUT)["y"] - wanted).max() <= 0.01 * 1.0001
    assert not {node.domain for node in intonnx.to_onnx(graph).graph.node} & set(QUARK)


@pytest.mark.parametrize("domain", QUARK)
@pytest.mark.parametrize("storage", [np.float16, np.int32])
def test_other_types_of_quark_stay(domain: str, storage: Any) -> None:
    build = Builder(17)
    x = build.feed("x", (3, 6), F32)
    pair = [build.constant("s", F32(0.01)), build.constant("z", np.asarray(0, storage))]
    codes = build.node(QUARK[domain][0], [x, *pair], domain=domain)
    build.output(build.node(QUARK[domain][1], [codes, *pair], name="y", domain=domain), F32)
    model = build.model(infer=False)
    model.graph.output[0].type.CopyFrom(helper.make_tensor_type_proto(TensorProto.FLOAT, [3, 6]))
    model.opset_import.append(helper.make_opsetid(domain, 1))
    first = intonnx.coverage(intonnx.import_model(model)).nodes[0]
    assert (first.state, first.code) == ("float", "unsupported-type")


def qonnx_model(
    *, bits: float = 4, signed: int = 1, narrow: int = 0, zero: float = 0, mode: str = "ROUND",
    op_type: str = "Quant", domain: str = "qonnx.custom_op.general",
) -> onnx.ModelProto:  # fmt: skip
    """Quant of an input and of weights around a MatMul, and of its result."""
    build = Builder(13)
    attrs: dict[str, Any] = {"signed": signed, "narrow": narrow, "rounding_mode": mode}
    tail = [build.constant("zero", F32(zero)), build.constant("bits", F32(bits))]
    x = build.feed("x", (3, 6), F32)
    x = build.node(op_type, [x, build.constant("xs", F32(0.2)), *tail], domain=domain, **attrs)
    weights = build.constant("w", (CODES * F32(0.02)).astype(F32))
    scales = build.constant("ws", RNG.uniform(0.1, 0.3, (1, 4)).astype(F32))
    wide = [build.constant("none", F32(0)), build.constant("wide", F32(5))]
    w = build.node("Quant", [weights, scales, *wide], domain=domain, signed=1, narrow=1,
                   rounding_mode="ROUND")  # fmt: skip
    value = build.node("MatMul", [x, w])
    value = build.node(op_type, [value, build.constant("ys", F32(0.5)), *tail], name="y",
                       domain=domain, **attrs)  # fmt: skip
    build.output(value, F32)
    model = build.model(infer=False)
    model.graph.output[0].type.CopyFrom(helper.make_tensor_type_proto(TensorProto.FLOAT, [3, 4]))
    model.opset_import.append(helper.make_opsetid(domain, 1))
    return model


def quant(x: Array, scale: Any, low: int, high: int) -> Array:
    """Quant as the QONNX documentation defines it, for the zero point 0."""
    return np.asarray(np.rint(np.clip(x / scale, low, high)) * scale, F32)


@pytest.mark.parametrize(
    ("domain", "op_type"),
    [("qonnx.custom_op.general", "Quant"), ("qonnx.custom_op.general", "IntQuant"),
     ("onnx.brevitas", "Quant")],
)  # fmt: skip
@pytest.mark.parametrize(
    ("signed", "narrow", "bits", "low", "high"),
    [(1, 0, 4, -8, 7), (1, 1, 4, -7, 7), (0, 0, 3, 0, 7), (0, 1, 3, 0, 6), (1, 1, 8, -127, 127),
     (1, 0, 12, -2048, 2047), (0, 0, 1, 0, 1)],
)  # fmt: skip
def test_quant_of_qonnx(
    domain: str, op_type: str, signed: int, narrow: int, bits: int, low: int, high: int
) -> None:
    if domain == "onnx.brevitas" and bits != 4:
        return
    model = qonnx_model(bits=bits, signed=signed, narrow=narrow, domain=domain, op_type="Quant")
    for node in model.graph.node:
        node.op_type = op_type if node.op_type == "Quant" else node.op_type
    graph = intonnx.import_model(model)
    assert integer(graph)
    arrays = {t.name: onnx.numpy_helper.to_array(t) for t in model.graph.initializer}
    w = quant(arrays["w"], arrays["ws"], -15, 15)
    product = quant(INPUT["x"], F32(0.2), low, high).astype(np.float64) @ w.astype(np.float64)
    wanted = quant(product.astype(F32), F32(0.5), low, high)
    found = intonnx.compile(graph).run(INPUT)["y"]
    # The product of real numbers is not rounded as the integer one: a tie may go the other way.
    assert np.abs(found - wanted).max() <= 0.5
    exported = run_onnxruntime(intonnx.to_onnx(graph), INPUT, optimized=False)
    np.testing.assert_array_equal(exported["y"], found)


@pytest.mark.parametrize(
    ("changes", "code"),
    [({"zero": 3.0}, "unsupported-attribute"), ({"mode": "FLOOR"}, "unsupported-attribute"),
     ({"bits": 1.0}, "unsupported-type"), ({"bits": 2.5}, "unsupported-type"),
     ({"bits": 24.0}, "unsupported-type")],
)  # fmt: skip
def test_quant_of_qonnx_that_is_no_quantize_linear(changes: dict[str, Any], code: str) -> None:
    graph = intonnx.import_model(qonnx_model(**changes))
    first = intonnx.coverage(graph).nodes[0]
    assert (first.op, first.code) == ("qonnx.custom_op.general.Quant", code)


@pytest.mark.parametrize(
    ("domain", "op_type"),
    [("qonnx.custom_op.general", "BipolarQuant"), ("qonnx.custom_op.general", "Trunc"),
     ("trt", "TRT_FP8QuantizeLinear"), ("com.amd.quark", "BFPQuantizeDequantize")],
)  # fmt: skip
def test_operators_of_other_domains_are_kept_and_named(domain: str, op_type: str) -> None:
    build = Builder(17)
    x = build.feed("x", (3, 6), F32)
    build.output(
        build.node(op_type, [x, build.constant("s", F32(0.5))], name="y", domain=domain), F32
    )
    model = build.model(infer=False)
    model.graph.output[0].type.CopyFrom(helper.make_tensor_type_proto(TensorProto.FLOAT, [3, 6]))
    model.opset_import.append(helper.make_opsetid(domain, 1))
    graph = intonnx.import_model(model)
    (entry,) = intonnx.coverage(graph).nodes
    assert (entry.state, entry.code) == ("float", "no-integer-form")
    assert f"'{domain}', which ONNX does not define" in entry.detail
    assert intonnx.to_onnx(graph).graph.node[0].domain == domain
    with pytest.raises(CompileFailure, match=op_type):
        intonnx.compile(graph)
