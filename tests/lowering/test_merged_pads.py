"""A Pad with the zero point in front of a convolution becomes the convolution's own padding."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

import intonnx
from intonnx.ir.verify import verify
from intonnx.lowering.shaping.pads import merged_pads
from support.models import Array, Builder, Fed, Held, s8, u8
from support.runtime import run_onnxruntime
from support.wings import apart

SHAPE = (2, 3, 7, 8)


def padded_conv(
    pads: list[int], *, fill: float = 0.0, make: Any = u8, count: int = 1, also: bool = False,
    attrs: dict[str, Any] | None = None, mode: str = "constant",
) -> onnx.ModelProto:  # fmt: skip
    build = Builder(18)
    params = make(0.05, 3)
    value = build.operand(Fed("x", SHAPE, params, quantized=True), 0)
    for index in range(count):
        names = [value, build.constant(f"pads{index}", np.asarray(pads))]
        names.append(build.constant(f"fill{index}", np.float32(fill)))
        value = build.node("Pad", names, mode=mode)
        value = build.dequantize(build.quantize(value, params), params)
    w = np.random.default_rng(0).integers(-60, 60, (4, 3, 3, 3))
    conv = build.node("Conv", [value, build.operand(Held(w, s8(0.02)), 1)], **(attrs or {}))
    build.output(build.quantize(conv, make(0.3, 5), "y"), params.dtype)
    if also:
        build.output(value, np.float32)
    return build.model()


def codes(dtype: Any) -> dict[str, Array]:
    info = np.iinfo(dtype)
    rng = np.random.default_rng(1)
    return {"x": rng.integers(info.min, info.max + 1, SHAPE).astype(dtype)}


def operators(model: onnx.ModelProto) -> list[str]:
    return [node.op_type for node in model.graph.node]


@pytest.mark.parametrize("make", [u8, s8])
@pytest.mark.parametrize(
    ("options", "pads"),
    [
        ({"pads": [0, 0, 1, 2, 0, 0, 3, 0]}, 0),
        ({"pads": [0, 0, 1, 1, 0, 0, 1, 1], "count": 2}, 0),
        ({"pads": [0, 0, 1, 1, 0, 0, 1, 1], "attrs": {"pads": [1, 0, 0, 2]}}, 0),
        ({"pads": [0, 0, 1, 1, 0, 0, 1, 1], "attrs": {"auto_pad": "VALID"}}, 0),
        ({"pads": [0, 0, 1, 1, 0, 0, 1, 1], "also": True}, 1),
        ({"pads": [0, 0, 1, 1, 0, 0, 1, 1], "fill": 1.0}, 1),
        ({"pads": [0, 0, 1, 1, 0, 0, 1, 1], "mode": "reflect"}, 1),
        ({"pads": [0, 0, 1, -1, 0, 0, 1, 1]}, 1),
        ({"pads": [1, 0, 1, 1, 0, 0, 1, 1]}, 1),
        ({"pads": [0, 0, 1, 1, 0, 0, 1, 1], "attrs": {"auto_pad": "SAME_UPPER"}}, 1),
    ],
)
def test_pads(make: Any, options: dict[str, Any], pads: int) -> None:
    model = padded_conv(make=make, **options)
    graph = intonnx.import_model(model)
    after, modified = merged_pads(graph)
    verify(after)
    alone = "fill" in options or "mode" in options or "SAME" in str(options)
    assert modified != (alone or -1 in options["pads"] or options["pads"][0] == 1)
    feeds = codes(make(1).dtype)
    wanted = intonnx.compile(graph).run(feeds)
    apart(intonnx.compile(after).run(feeds), wanted, 0)
    exported = intonnx.to_onnx(graph)
    assert operators(exported).count("Pad") == pads
    assert "QLinearConv" in operators(exported)
    for optimized in (False, True):
        apart(run_onnxruntime(exported, feeds, optimized=optimized), wanted, 0)
