"""Ties are told from errors, by exact fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import onnx
import pytest

import intonnx
from intonnx.verification import random_inputs, verify_graph
from intonnx.verification.ties import is_tie, ties_among
from support.models import Builder, Fed, Held, qdq_model, s8, u8


@pytest.mark.parametrize(
    ("quanta", "tie"),
    [
        (Fraction(7, 2), True),
        (Fraction(-7, 2), True),
        (Fraction(7, 2) + Fraction(1, 2**23), True),
        (Fraction(7, 2) - Fraction(1, 2**21), True),
        (Fraction(7, 2) - Fraction(1, 2**20), False),  # 2^-22 of it is 0.87 * 2^-20
        (Fraction(3), False),
        (Fraction(1, 2) + Fraction(1, 2**21), False),
        (Fraction(1001, 2) + Fraction(1, 2**15), True),
        (Fraction(1001, 2) + Fraction(1, 2**13), False),
    ],
)
def test_half_way_but_for_float_roundings(quanta: Fraction, tie: bool) -> None:
    assert is_tie(quanta) is tie


def convolution(bias: float) -> onnx.ModelProto:
    """One weight of one: codes 0 to 255 times a scale ratio of one half, all odd ones are ties."""
    build = Builder(17)
    x = build.operand(Fed("x", (1, 1, 16, 16), u8(0.5, 0), quantized=True), 0)
    w = build.operand(Held(np.ones((1, 1, 1, 1)), s8(1.0, 0)), 1)
    b = build.constant("b", np.full(1, bias, np.float32))
    conv = build.node("Conv", [x, w, b], name="conv")
    build.output(build.quantize(conv, u8(1.0, 0), "y"), np.uint8)
    return build.model()


def test_codes_half_way_are_ties_and_others_are_errors() -> None:
    graph = intonnx.import_model(convolution(0.0))
    (node,) = [node for node in graph.nodes if node.op.name == "qnn.requantize"]
    codes = np.arange(256, dtype=np.uint8).reshape(1, 1, 16, 16)
    sums = {node.operands[0]: codes.astype(np.int32)}
    result = intonnx.compile(graph).run({"x": codes})["y"]
    everything = np.ones(codes.shape, bool)
    assert ties_among(graph, node, sums, result, everything) == 128  # the odd ones
    even = codes % 2 == 0
    assert ties_among(graph, node, sums, result, even) == 0


def test_verify_says_which_differences_are_ties() -> None:
    """The other model adds half a quantum, and so rounds other codes."""
    graph = intonnx.import_model(convolution(0.0))
    codes = np.arange(256, dtype=np.uint8).reshape(1, 1, 16, 16)
    other = intonnx.compile(intonnx.import_model(convolution(0.5))).run({"x": codes})["y"]
    found = verify_graph(graph, [{"x": codes}], original=convolution(0.5))
    made = {comparison.reference: comparison for comparison in found.comparisons}
    (value,) = [d for d in made["original"].operators if d.value == "y"]
    # Odd codes are half way here, whatever the other model made of them.
    apart = intonnx.compile(graph).run({"x": codes})["y"] != other
    assert value.differing == np.count_nonzero(apart) > 0
    assert value.ties == np.count_nonzero(apart & (codes % 2 == 1))


def test_sums_and_products_are_analysed_and_tables_are_not() -> None:
    for op_type, kinds in (("Add", 2), ("Mul", 2), ("Sigmoid", 1)):
        feeds = [Fed(f"x{i}", (2, 30), u8(0.25, 3), quantized=True) for i in range(kinds)]
        model = qdq_model(op_type, feeds, out=u8(0.5, 7))
        graph = intonnx.import_model(model)
        node = next(n for n in graph.nodes if n.op.name in ("qnn.add", "qnn.multiply", "qnn.lut"))
        inputs = random_inputs(graph, np.random.default_rng(0))
        trace = intonnx.compile(graph).trace(inputs)
        result = trace[node.results[0]]
        found = ties_among(graph, node, trace, result, np.ones(result.shape, bool))
        if op_type == "Sigmoid":
            assert found is None
            continue
        a, b = (inputs[f"x{i}"].astype(int) - 3 for i in range(2))
        quanta = (a + b) * Fraction(1, 2) if op_type == "Add" else a * b * Fraction(1, 8)
        wanted = sum(v.denominator == 2 for v in quanta.reshape(-1))
        assert found == wanted
        assert wanted > 0
