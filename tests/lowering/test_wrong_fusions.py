"""What onnxruntime's optimizer makes of an export still gives what our integers give.

Measured on onnxruntime 1.32: it merges two unequal Q-DQ pairs into one, quantizes the activations
of a weight-only MatMul, joins operators with kernels of another arithmetic, makes s8 activations u8
and then multiplies them in saturating kernels, and loads no 2-bit weights. Exports keep such
operators apart. The models run as they are, without what other tests do for kernels of this CPU.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import intonnx
from boundaries.patterns import Case
from boundaries.test_boundaries import TABLE
from support.runtime import run_onnxruntime

NAMED = (
    "conv-per-tensor-s8-", "gemm-per-channel-s8-", "matmul-bias-s8-", "matmul-int2-weights-u8-",
    "matmul-weight-only-", "matmul-16-bit-u16-", "add-mixed-types-", "clip-u8-", "clip-below-",
    "max-pool-different-scale-u8-", "requantize-", "transpose-different-u8-", "pad-different-u8-",
)  # fmt: skip
CASES = [case for case in TABLE if case.id.startswith(NAMED)] + TABLE[::11]
# These are 16-bit floats, whose sums have an error of their own.
CASES = [case for case in dict.fromkeys(CASES) if "float16" not in case.id]


@pytest.mark.parametrize("form", ["qlinear", "qdq"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_optimized_exports_stay_right(case: Case, form: Any) -> None:
    model, draw = case.pattern.draw(case.storage, case.from_codes, 0)
    graph = intonnx.import_model(model)
    exported = intonnx.to_onnx(graph, form)
    found = run_onnxruntime(exported, draw.inputs, optimized=True, exact=False)
    ours = intonnx.compile(graph).run(draw.inputs)
    plain = run_onnxruntime(exported, draw.inputs, optimized=False, exact=False)
    for name, array in found.items():
        if np.array_equal(array, ours[name]) or np.array_equal(array, plain[name]):
            continue
        # A fused kernel and the literal operators are a quantum apart, where both are right.
        step = draw.quanta[name]
        limit = 1.001 * (1 if array.dtype.kind != "f" else step or 1e-4)
        apart = np.abs(array.astype(np.float64) - ours[name].astype(np.float64))
        assert form == "qdq" or case.pattern.stays, f"{name}: {apart.max()}"
        assert apart.max() <= limit, f"{name}: {apart.max()}, a quantum is {step}"
