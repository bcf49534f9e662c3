"""Long models: many small quantized operators, one after the other."""

from __future__ import annotations

import numpy as np
import onnx

from .models import Builder, s8, u8

SHAPE = ("N", 4, 6, 6)


def chain(count: int, *, distinct: bool = True) -> onnx.ModelProto:
    """A model of so many operators between quantizers: Add, Conv and Relu in turn.

    With `distinct` a thousand different scales follow each other, else there is one.
    """
    rng = np.random.default_rng(0)
    build = Builder(17)
    first = u8(0.05, 128)
    value = build.dequantize(build.quantize(build.feed("x", SHAPE, np.float32), first), first)
    before = value
    for index in range(count):
        kind = ("Add", "Conv", "Relu")[index % 3]
        operands = [value]
        if kind == "Add":
            operands.append(before)
        elif kind == "Conv":
            codes = rng.integers(-128, 128, (4, 4, 1, 1)).astype(np.int8)
            operands.append(build.dequantize(build.constant(f"w{index}", codes), s8(0.01)))
        params = u8(0.05 + 0.0001 * (index % 1000) if distinct else 0.05, 128)
        result = build.node(kind, operands)
        before, value = value, build.dequantize(build.quantize(result, params), params)
    build.output(value, np.float32)
    return build.model(infer=False)
