"""A clip whose real values are read as well as their codes: exact for both, or not on codes."""

from __future__ import annotations

import numpy as np
import pytest

import intonnx
from support.models import Builder, Fed, Params, s8, u8
from support.runtime import run_onnxruntime
from support.wings import apart

LIMITS: list[tuple[float | None, float | None]] = [
    (0.0, 6.0), (0.5, 6.25), (0.3, 6.0), (-999.0, 999.0), (100.0, 200.0), (-200.0, -100.0),
    (100.0, None), (None, -100.0), (5.0, 3.0), (None, None), (-64.0, 63.5),
]  # fmt: skip


@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("side", [u8(0.25, 128), s8(0.5, 0), u8(0.1, 0)])
@pytest.mark.parametrize("out", [u8(0.3, 100), s8(0.5, -128)])
def test_the_real_values_and_their_codes(
    side: Params, out: Params, limits: tuple[float | None, float | None]
) -> None:
    build = Builder()
    names = [build.operand(Fed("x", (256,), side, quantized=True), 0)]
    names += ["" if v is None else build.constant(f"b{v}", np.float32(v)) for v in limits]
    real = build.node("Clip", names)
    build.output(build.node("Identity", [real], name="real"), np.float32)
    build.output(build.quantize(real, out, "y"), out.dtype)
    model = build.model()
    inputs = {"x": np.arange(256, dtype=np.uint8).view(side.dtype)}
    graph = intonnx.import_model(model)
    wanted = run_onnxruntime(model, inputs, optimized=False)
    for numerics in ("qlinear", "qdq"):
        apart(intonnx.compile(graph, numerics=numerics).run(inputs), wanted, 0)
    apart(run_onnxruntime(intonnx.to_onnx(graph), inputs, optimized=False), wanted, 0)
    apart(run_onnxruntime(intonnx.to_onnx(graph, form="qdq"), inputs, optimized=False), wanted, 0)
