"""Exports for a named processor: which weights move, and which kernels promise no bits."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto

import intonnx
from intonnx.lowering.export import export
from support.models import Array, Builder, Fed, Held, Params, qdq_model, qoperator_model, s8, u8
from support.runtime import run_onnxruntime


def conv_model(w: Array, *, groups: int = 1, also_add: bool = False) -> onnx.ModelProto:
    build = Builder(17)
    params = u8(0.05, 3)
    x = build.operand(Fed("x", (1, 4, 8, 8), params, quantized=True), 0)
    value = build.node("Conv", [x, build.operand(Held(w, s8(0.02)), 1)], group=groups)
    codes = build.quantize(value, u8(0.9, 100), "conv")
    if also_add:
        real = build.dequantize(codes, u8(0.9, 100))
        codes = build.quantize(build.node("Add", [real, real]), u8(2.0, 100), "sum")
    build.output(codes, np.uint8)
    return build.model()


def weight_type(model: onnx.ModelProto) -> int:
    (node,) = (n for n in model.graph.node if n.op_type == "QLinearConv")
    return next(t.data_type for t in model.graph.initializer if t.name == node.input[3])


LARGE = np.full((4, 4, 3, 3), 127)
SMALL = np.full((4, 4, 3, 3), 60)


@pytest.mark.parametrize(
    ("w", "groups", "cpu", "storage"),
    [
        (LARGE, 1, "x86", TensorProto.UINT8),
        (LARGE, 1, "x86-vnni", TensorProto.INT8),
        (LARGE, 1, "arm", TensorProto.INT8),
        (SMALL, 1, "x86", TensorProto.INT8),
        (LARGE[:, :1], 4, "x86", TensorProto.INT8),
    ],
    ids=["saturating", "vnni", "arm", "small", "depthwise"],
)
def test_weights_move_where_the_kernels_saturate(
    w: Array, groups: int, cpu: Any, storage: int
) -> None:
    graph = intonnx.import_model(conv_model(w, groups=groups))
    exported = export(graph, cpu=cpu)
    assert weight_type(exported.model) == storage
    saturating = w is LARGE and cpu == "x86-vnni"
    assert [n.code for n in exported.inexact()] == ["saturation"] * saturating
    if cpu == "x86":
        codes = {"x": np.full((1, 4, 8, 8), 255, np.uint8)}
        wanted = intonnx.compile(graph).run(codes)["conv"]
        for optimized in (False, True):
            found = run_onnxruntime(exported.model, codes, optimized=optimized, exact=False)
            np.testing.assert_array_equal(found["conv"], wanted)


def test_depthwise_kernels_add_no_pairs() -> None:
    """QLinearConv of u8 and s8 codes equals that of u8 and u8 ones, at the ends of the ranges."""
    rng = np.random.default_rng(0)
    cases = product((1, 2, 3), (1, 3, 5), (1, 2), (2, 17), ((0, 0), (255, 127), (3, -128)))
    for rank, kernel, stride, channels, (x_zero, w_zero) in cases:
        shape = [1, channels, *[9] * rank]
        x = rng.choice(np.asarray([0, 1, 254, 255], np.uint8), shape)
        w = rng.choice(np.asarray([-128, -127, 127], np.int8), [channels, 1, *[kernel] * rank])
        found = []
        for weights, zero in (
            (w, np.int8(w_zero)),
            ((w.astype(int) + 128).astype(np.uint8), np.uint8(w_zero + 128)),
        ):
            inputs = [Fed("x", shape, dtype=np.uint8), np.float32(0.01), np.uint8(x_zero), weights,
                      np.float32(0.1), zero, np.float32(9 * kernel**2), np.uint8(99)]  # fmt: skip
            attrs = {"group": channels, "strides": [stride] * rank}
            model = qoperator_model("QLinearConv", inputs, np.uint8, attrs=attrs)
            found.append(run_onnxruntime(model, {"x": x}, optimized=False, exact=False)["y"])
        np.testing.assert_array_equal(*found, err_msg=f"{rank}, {kernel}, {channels}")


def test_what_kernels_do_not_promise_is_said_for_each_node() -> None:
    graph = intonnx.import_model(conv_model(SMALL, also_add=True))
    assert export(graph).inexact() == ()
    (entry,) = export(graph, cpu="arm").inexact()
    assert (entry.op, entry.code) == ("QLinearAdd", "fixed-point")
    assert "'sum' may be one quantum away" in entry.detail
    literal = export(graph, "qdq").inexact()
    assert {entry.code for entry in literal} == {"float"}
    large = export(intonnx.import_model(conv_model(LARGE)), "qdq").inexact()
    assert [entry.code for entry in large] == ["saturation"]


def test_float_kernels_between_quantizers_are_named() -> None:
    scale = Held(np.ones(8, np.float32))
    x = Fed("x", (2, 8), Params(np.uint8, 0.1, 3))
    graph = intonnx.import_model(qdq_model("LayerNormalization", [x, scale], out=u8(0.02, 128)))
    assert [(e.op, e.code) for e in export(graph).inexact()] == [("QuantizeLinear", "float")]


def test_an_unknown_processor_is_refused() -> None:
    graph = intonnx.import_model(conv_model(SMALL))
    with pytest.raises(intonnx.ExportFailure, match="'mips' is none of x86, x86-vnni, arm"):
        intonnx.to_onnx(graph, cpu="mips")  # type: ignore[arg-type]
