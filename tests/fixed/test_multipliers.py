"""The report of multipliers: what each operator multiplies by, and its largest relative error."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

import intonnx
from support.fixed import decompose, value
from support.models import Fed, Held, qdq_model, s8, u8


def test_every_channel_of_a_convolution_has_its_multiplier() -> None:
    scales = np.asarray([0.02, 0.013, 0.4], np.float32)
    w = np.ones((3, 2, 1, 1), np.int8)
    x, out = u8(0.05, 3), u8(0.1, 7)
    operands = [Fed("x", (1, 2, 4, 4), x), Held(w, s8(scales, [0] * 3, 0))]
    model = qdq_model("Conv", operands, out=out)
    graph = intonnx.import_model(model)
    (found,) = intonnx.multipliers(graph)
    (made,) = found.multipliers
    sums = [np.float32(0.05) * scale for scale in scales]
    factors = [Fraction(float(v)) / Fraction(float(np.float32(0.1))) for v in sums]
    pairs = list(zip(made.m.ravel().tolist(), made.shift.ravel().tolist(), strict=True))
    assert pairs == [decompose(factor) for factor in factors]
    errors = [abs(value(p) / f - 1) for p, f in zip(pairs, factors, strict=True)]
    assert found.error == made.error == float(max(errors))
    assert 0 < found.error < 2**-31
    node = next(node for node in graph.nodes if node.op.name == "qnn.requantize")
    assert (found.node, found.value) == (node.label, node.results[0])


def test_sizes_that_are_not_known_have_no_multiplier_yet() -> None:
    x = u8(0.05, 3)
    model = qdq_model("GlobalAveragePool", [Fed("x", (1, 2, "H", 4), x)], out=x)
    assert intonnx.multipliers(intonnx.import_model(model)) == ()


def test_exact_factors_have_no_error() -> None:
    x, out = u8(0.25, 3), u8(0.5, 7)
    model = qdq_model("GlobalAveragePool", [Fed("x", (1, 2, 4, 4), x)], out=out)
    (found,) = intonnx.multipliers(intonnx.import_model(model))
    assert found.error == 0
    assert int(found.multipliers[0].m.ravel()[0]) == 1 << 30
