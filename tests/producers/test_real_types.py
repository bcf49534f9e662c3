"""Scales of float16 and bfloat16, codes of float8 and float4."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper

import intonnx
from support.models import Builder
from support.runtime import run_onnxruntime
from support.wings import apart

F32 = np.float32
RNG = np.random.default_rng(6)
SHAPE = (1, 3, 6, 6)
REAL = RNG.normal(0, 0.3, (4, 3, 3, 3)).astype(F32)
CODES = np.clip(np.rint(REAL / 0.01), -127, 127).astype(np.int8)
SCALES = RNG.uniform(0.005, 0.02, 4).astype(F32)


@pytest.mark.parametrize("opset", [19, 21, 23])
def test_float16_models(opset: int) -> None:
    """ModelOpt with high_precision_dtype="fp16"."""
    half = np.float16
    build = Builder(opset)
    x = build.feed("x", SHAPE, half)
    names = [build.constant("s", half(0.02)), build.constant("z", np.int8(3))]
    real = build.node("DequantizeLinear", [build.node("QuantizeLinear", [x, *names]), *names])
    own = [build.constant("ws", SCALES.astype(half)), build.constant("wz", np.zeros(4, np.int8))]
    w = build.node("QuantizeLinear", [build.constant("w", REAL.astype(half)), *own], axis=0)
    w = build.node("DequantizeLinear", [w, *own], axis=0)
    value = build.node("Conv", [real, w, build.constant("b", RNG.normal(0, 1, 4).astype(half))])
    build.output(build.node("QuantizeLinear", [value, *names], name="y"), np.int8)
    model = build.model()
    graph = intonnx.import_model(model)
    assert intonnx.coverage(graph).float == 0
    inputs = {"x": RNG.normal(0, 1, SHAPE).astype(half)}
    apart(intonnx.compile(graph).run(inputs), run_onnxruntime(model, inputs, optimized=False), 1)


def test_bfloat16_scales() -> None:
    """No kernel of onnxruntime takes them: the integers of the same model in float32."""
    build = Builder(21)
    bf16 = ml_dtypes.bfloat16
    x = build.node("Cast", [build.feed("x", SHAPE, F32)], to=TensorProto.BFLOAT16)
    names = [build.constant("s", np.asarray(0.02, bf16)), build.constant("z", np.int8(0))]
    real = build.node("DequantizeLinear", [build.node("QuantizeLinear", [x, *names]), *names])
    w = [build.constant("w", CODES), build.constant("ws", np.asarray(0.01, bf16))]
    value = build.node("Conv", [real, build.node("DequantizeLinear", w)])
    build.output(build.node("QuantizeLinear", [value, *names], name="y"), np.int8)
    graph = intonnx.import_model(build.model())
    assert {n.op for n in intonnx.coverage(graph).nodes if n.state == "float"} == {"Cast"}
    image = RNG.normal(0, 1, SHAPE).astype(F32)
    scale, own = F32(bf16(0.02)), F32(bf16(0.01))
    codes = np.clip(np.rint(image.astype(bf16).astype(F32) / scale), -128, 127).astype(np.int64)
    sums = np.zeros((1, 4, 4, 4), np.int64)
    for row, column in np.ndindex(3, 3):
        window = codes[:, :, row : row + 4, column : column + 4]
        sums += np.einsum("ncij,oc->noij", window, CODES[:, :, row, column].astype(np.int64))
    wanted = np.clip(np.rint(sums.astype(F32) * (scale * own / scale)), -128, 127)
    apart(intonnx.compile(graph).run({"x": image}), {"y": wanted.astype(np.int8)}, 1)


@pytest.mark.parametrize(
    "element",
    [TensorProto.FLOAT8E4M3FN, TensorProto.FLOAT8E5M2, TensorProto.FLOAT8E4M3FNUZ,
     TensorProto.FLOAT4E2M1],
)  # fmt: skip
def test_float8_and_float4_run_and_say_why_they_stay(element: int) -> None:
    build = Builder(23)
    x, scale = build.feed("x", (40,), F32), build.constant("s", F32(0.5))
    build.constants.append(helper.make_tensor("z", element, [], [0.0]))
    codes = build.node("QuantizeLinear", [x, scale, "z"])
    build.output(build.node("DequantizeLinear", [codes, scale, "z"], name="y"), F32)
    graph = intonnx.import_model(build.model())
    nodes = intonnx.coverage(graph).nodes
    assert {n.op for n in nodes} == {"QuantizeLinear", "DequantizeLinear"}
    assert {n.code for n in nodes} == {"unsupported-type"}
    assert all("have no integer arithmetic" in n.detail for n in nodes)
    array = RNG.normal(0, 2, 40).astype(F32)
    dtype = helper.tensor_dtype_to_np_dtype(element)
    wanted = (array / F32(0.5)).astype(dtype).astype(F32) * F32(0.5)
    apart(intonnx.compile(graph).run({"x": array}), {"y": wanted}, 0)
    assert [n.op_type for n in intonnx.to_onnx(graph).graph.node] == [n.op for n in nodes]
