"""s8 codes become u8 for x86: the same graph inputs, outputs and values, other kernels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

import intonnx
from intonnx.ir import ops
from intonnx.ir.storage import MOVABLE
from intonnx.ir.types import DType
from intonnx.ir.verify import verify
from intonnx.lowering.shaping.unsigned import unsigned
from support.models import (
    MICROSOFT,
    Array,
    Builder,
    Fed,
    Held,
    Params,
    qdq_model,
    qoperator_model,
    s8,
)
from support.runtime import run_onnxruntime
from support.wings import apart

SCALES = st.floats(2**-6, 2**-2, width=32) | st.sampled_from([0.02, 0.04, 0.05, 0.1, 0.025, 1 / 3])
ZEROS = st.sampled_from([-128, -1, 0, 3, 127])


def element_types(model: onnx.ModelProto, op_type: str) -> set[int]:
    """The types of the zero points of the operators of this type."""
    held = {tensor.name: tensor.data_type for tensor in model.graph.initializer}
    nodes = [node for node in model.graph.node if node.op_type == op_type]
    return {held[name] for node in nodes for name in node.input if "zero_point" in name}


def network() -> onnx.ModelProto:
    """Convolutions, a sum, limits, padding, a table, a pool, on s8 from end to end."""
    build = Builder(18)
    params, rng = s8(0.05, 3), np.random.default_rng(0)
    x = build.operand(Fed("x", (2, 4, 9, 9), params, quantized=True), 0)
    w = build.operand(Held(rng.integers(-128, 128, (4, 4, 3, 3)), s8(0.01)), 1)
    c = build.node("Conv", [x, w], pads=[1, 1, 1, 1])
    c = build.node("Clip", [c, build.constant("low", np.float32(-1)),
                            build.constant("high", np.float32(2))])  # fmt: skip
    c = build.dequantize(build.quantize(c, params), params)
    total = build.node("Add", [c, x])
    total = build.dequantize(build.quantize(total, s8(0.07, -20)), s8(0.07, -20))
    pads = build.constant("pads", np.asarray([0, 0, 1, 0, 0, 0, 0, 1]))
    padded = build.node("Pad", [total, pads, build.constant("fill", np.float32(0.7))])
    padded = build.dequantize(build.quantize(padded, s8(0.07, -20)), s8(0.07, -20))
    bent = build.node("Tanh", [padded])
    bent = build.dequantize(build.quantize(bent, s8(0.01, 5)), s8(0.01, 5))
    pooled = build.node("MaxPool", [bent], kernel_shape=[2, 2], strides=[2, 2])
    codes = build.quantize(pooled, s8(0.01, 5), "y")
    build.output(codes, np.int8)
    build.output(build.dequantize(codes, s8(0.01, 5), "real"), np.float32)
    return build.model()


def test_a_network_keeps_its_interface_and_its_results() -> None:
    graph = intonnx.import_model(network())
    after, modified = unsigned(graph)
    verify(after)
    assert modified
    made = [after.types[name] for node in after.nodes for name in node.results]
    # The input, with its parameters, and `y`.
    assert [k.dtype for k in made if k.quant is not None].count(DType.I8) == 2
    assert [after.types[n].dtype for n in (*after.inputs, *after.outputs)] == [
        graph.types[n].dtype for n in (*graph.inputs, *graph.outputs)
    ]
    codes = {"x": np.random.default_rng(1).integers(-128, 128, (2, 4, 9, 9)).astype(np.int8)}
    wanted = intonnx.compile(graph).run(codes)
    # No QLinearAdd rounds here: the literal arithmetic knows no codes.
    apart(intonnx.compile(after, numerics="qdq").run(codes),
          intonnx.compile(graph, numerics="qdq").run(codes), 0)  # fmt: skip
    for cpu, storage in (("x86", TensorProto.UINT8), ("arm", TensorProto.INT8)):
        model = intonnx.to_onnx(graph, cpu=cpu)  # type: ignore[arg-type]
        assert storage in element_types(model, "QLinearConv")
        assert model == intonnx.to_onnx(graph, cpu=cpu)  # type: ignore[arg-type]
        for optimized in (False, True):
            apart(run_onnxruntime(model, codes, optimized=optimized), wanted, 0)


def test_unsigned_graphs_stay_as_they_are() -> None:
    x = Fed("x", (4,), Params(np.uint8, 0.1, 3))
    graph = intonnx.import_model(qdq_model("Tanh", [x], out=Params(np.uint8, 0.01, 128)))
    after, modified = unsigned(graph)
    assert (after is graph, modified) == (True, False)


def test_regions_without_products_stay_as_they_are() -> None:
    graph = intonnx.import_model(qdq_model("Tanh", [Fed("x", (4,), s8(0.1))], out=s8(0.01)))
    after, modified = unsigned(graph)
    assert (after is graph, modified) == (True, False)


def before_a_conv(model: onnx.ModelProto) -> intonnx.Graph:
    """The graph of a model with a s8 result [1, 1, H, W], which a convolution reads too."""
    scale = numpy_helper.from_array(np.float32(0.5), "one_scale")  # type: ignore[arg-type]
    zero = numpy_helper.from_array(np.int8(1), "one_zero")  # type: ignore[arg-type]
    w = numpy_helper.from_array(np.ones((1, 1, 1, 1), np.int8), "w")
    q = ["one_scale", "one_zero"]
    model.graph.initializer.extend([scale, zero, w])
    model.graph.node.append(helper.make_node("QLinearConv", ["y", *q, "w", *q, *q], ["z"]))
    model.graph.output.append(helper.make_tensor_value_info("z", TensorProto.INT8, None))
    return intonnx.import_model(onnx.shape_inference.infer_shapes(model))


def check(model: onnx.ModelProto, feeds: dict[str, Array]) -> None:
    wanted = run_onnxruntime(model, feeds, optimized=False)
    exported = intonnx.to_onnx(before_a_conv(model))
    assert TensorProto.UINT8 in element_types(exported, "QLinearConv")
    found = run_onnxruntime(exported, feeds, optimized=False)
    np.testing.assert_array_equal(found["y"], wanted["y"])


def pairs() -> tuple[Array, Array]:
    codes, shape = np.arange(-128, 128).astype(np.int8), (1, 1, 256, 256)
    return np.repeat(codes, 256).reshape(shape), np.tile(codes, 256).reshape(shape)


@pytest.mark.parametrize("op_type", ["QLinearAdd", "QLinearMul"])
@settings(max_examples=30)
@given(scales=st.tuples(SCALES, SCALES, SCALES), zeros=st.tuples(ZEROS, ZEROS, ZEROS))
def test_kernels_on_raw_codes_give_the_same_for_every_pair(
    op_type: str, scales: tuple[float, float, float], zeros: tuple[int, int, int]
) -> None:
    """Their last bit depends on the codes: nudged scales, or s8 codes, where it would differ."""
    quantization: list[Any] = [
        item
        for scale, zero in zip(scales, zeros, strict=True)
        for item in (np.float32(scale), np.int8(zero))
    ]
    if op_type == "QLinearMul":
        quantization[4] = np.float32(scales[2] * 20)
    a, b = (Fed(name, (1, 1, 256, 256), dtype=np.int8) for name in "ab")
    inputs = [a, *quantization[:2], b, *quantization[2:]]
    model = qoperator_model(op_type, inputs, np.int8, domain=MICROSOFT)
    check(model, dict(zip("ab", pairs(), strict=True)))


@settings(max_examples=25)
@given(scales=st.tuples(SCALES, SCALES), zeros=st.tuples(ZEROS, ZEROS), pad=st.booleans(),
       size=st.integers(2, 3), seed=st.integers(0, 99))  # fmt: skip
def test_average_pools_give_the_same(
    scales: tuple[float, float], zeros: tuple[int, int], pad: bool, size: int, seed: int
) -> None:
    quantization = [np.float32(scales[0]), np.int8(zeros[0]), np.float32(scales[1]),
                    np.int8(zeros[1])]  # fmt: skip
    attrs = {"kernel_shape": [size, size], "pads": [int(pad)] * 4}
    x = Fed("x", (1, 1, 40, 40), dtype=np.int8)
    model = qoperator_model("QLinearAveragePool", [x, *quantization], np.int8, attrs=attrs)
    codes = np.random.default_rng(seed).integers(-128, 128, (1, 1, 40, 40)).astype(np.int8)
    check(model, {"x": codes})


@pytest.mark.parametrize("op_type", ["Add", "Mul", "GlobalAveragePool", "AveragePool", "Softmax"])
def test_operators_on_several_types_keep_their_arithmetic(op_type: str) -> None:
    """No QLinear kernel takes these, and none is used once all are u8."""
    build, rng = Builder(18), np.random.default_rng(3)
    params, other = s8(0.1, 3), Params(np.uint8, 0.1 if op_type == "Add" else 1 / 256, 7)
    x = build.operand(Fed("x", (1, 4, 6, 6), params, quantized=True), 0)
    w = build.operand(Held(rng.integers(-9, 9, (4, 4, 1, 1)), s8(0.1)), 1)
    c = build.dequantize(build.quantize(build.node("Conv", [x, w]), params), params)
    pair = {"Add": [c, x], "Mul": [c, x]}.get(op_type, [c])
    attrs = {"kernel_shape": [2, 2]} if op_type == "AveragePool" else {}
    value = build.node(op_type, pair, **attrs)
    build.output(build.quantize(value, other, "y"), np.uint8)
    graph = intonnx.import_model(build.model())
    codes = {"x": rng.integers(-128, 128, (1, 4, 6, 6)).astype(np.int8)}
    exported = intonnx.to_onnx(graph)
    assert TensorProto.UINT8 in element_types(exported, "QLinearConv")
    for optimized in (False, True):
        found = run_onnxruntime(exported, codes, optimized=optimized)
        apart(found, intonnx.compile(graph).run(codes), 0)


def test_every_operator_is_known_to_move_or_known_not_to() -> None:
    folder = Path(next(iter(ops.__path__)))
    names = {f"intonnx.ir.ops.{path.stem}" for path in folder.glob("[!_]*.py")}
    assert names - MOVABLE == {"intonnx.ir.ops.onnx_op"}
