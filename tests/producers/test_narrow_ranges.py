"""Q -> Clip -> DQ, as Brevitas writes 3 to 7 bits: a narrower storage range in the type."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import intonnx
from intonnx.ir.errors import RunFailure, TextFailure
from intonnx.ir.graph import Graph, Node
from intonnx.ir.ops.quantize import Dequantize
from intonnx.ir.ops.storage_cast import StorageCast
from intonnx.ir.types import DType, QuantParams, plain, quantized
from support.models import Array, Builder, Params, s8, s16, u8, u16
from support.runtime import run_onnxruntime
from support.wings import Arrays, apart, check_model

F32 = np.float32
RNG = np.random.default_rng(11)


@dataclass(frozen=True)
class Narrow:
    """Parameters whose codes are limited by a Clip."""

    params: Params
    low: int
    high: int


FOUR = Narrow(u8(0.2, 0), 0, 15)
SIGNED = Narrow(s8(0.11, 0), -7, 7)
MIDDLE = Narrow(u8(0.13, 20), 3, 40)
TWELVE = Narrow(s16(0.003, -5), -2048, 2047)


def limited(build: Builder, value: str, to: Narrow, name: str = "") -> str:
    """Q -> Clip; gives the codes."""
    codes = build.quantize(value, to.params)
    dtype = np.dtype(to.params.dtype)
    names = [build.constant(f"{codes}_{side}", np.asarray(bound, dtype))
             for side, bound in (("low", to.low), ("high", to.high))]  # fmt: skip
    return build.node("Clip", [codes, *names], name=name or f"{codes}_c")


def fake(build: Builder, value: str, to: Narrow) -> str:
    """Q -> Clip -> DQ."""
    return build.dequantize(limited(build, value, to), to.params)


def ranges(graph: Graph) -> set[tuple[str, int, int]]:
    found = (kind.quant for kind in graph.types.values())
    return {(q.storage.value, q.qmin, q.qmax) for q in found if q is not None and q.is_narrow}


def feed(build: Builder, *shape: int, name: str = "x") -> tuple[str, Array]:
    return build.feed(name, shape, F32), RNG.normal(0, 3, shape).astype(F32)


def check(build: Builder, inputs: Arrays, **limits: Any) -> Graph:
    graph = check_model(build.model(), inputs, **limits)
    assert intonnx.parse(str(graph), weights=graph.constants) == graph
    for value, array in intonnx.compile(graph).trace(inputs).items():
        quant = graph.types[value].quant
        if quant is not None and quant.is_narrow:
            assert quant.qmin <= array.min() <= array.max() <= quant.qmax, value
    return graph


def test_a_brevitas_layer() -> None:
    build = Builder(17)
    x, array = feed(build, 2, 3, 6, 6)
    weights = build.constant("w", RNG.normal(0, 0.4, (4, 3, 3, 3)).astype(F32))
    per_channel = Narrow(s8(RNG.uniform(0.05, 0.2, 4), 0, axis=0), -7, 7)
    value = build.node("Conv", [fake(build, x, FOUR), fake(build, weights, per_channel)])
    y = build.dequantize(limited(build, build.node("Relu", [value]), MIDDLE), MIDDLE.params, "y")
    build.output(y, F32)
    graph = check(build, {"x": array}, literal_quanta=1, export_quanta=0)
    assert ranges(graph) == {("u8", 0, 15), ("i8", -7, 7), ("u8", 3, 40)}
    assert "q<i8<-7:7>" in str(graph)
    exported = intonnx.to_onnx(graph)
    kinds = [node.op_type for node in exported.graph.node]
    assert kinds.count("QLinearConv") == 1
    assert kinds[kinds.index("QLinearConv") + 1] == "Clip"
    literal = intonnx.import_model(intonnx.to_onnx(graph, form="qdq"))
    assert ranges(literal) >= {("u8", 0, 15), ("u8", 3, 40)}


@pytest.mark.parametrize("narrow", [FOUR, SIGNED, MIDDLE])
def test_a_quantizer_alone(narrow: Narrow) -> None:
    build = Builder(21)
    build.output(limited(build, build.feed("x", (64,), F32), narrow, "y"), narrow.params.dtype)
    build.output(build.dequantize("y", narrow.params, "real"), F32)
    steps = np.arange(64) * 0.5 - 16 + narrow.low
    array = (steps * narrow.params.scale).astype(F32)
    array[:3] = [np.inf, -np.inf, np.nan]
    graph = check(build, {"x": array}, quanta=0)
    assert [node.op.name for node in graph.nodes] == ["qnn.quantize", "qnn.dequantize"]
    assert len(ranges(graph)) == 1


@pytest.mark.parametrize("narrow", [TWELVE, Narrow(u16(0.01, 9), 0, 511)])
def test_16_bit_codes(narrow: Narrow) -> None:
    """onnxruntime clips no 16-bit integers: the model is computed by numpy, the export runs."""
    build = Builder(21)
    real = fake(build, build.feed("x", (64,), F32), narrow)
    build.output(limited(build, build.node("Neg", [real]), narrow, "y"), narrow.params.dtype)
    graph = intonnx.import_model(build.model())
    assert {found[1:] for found in ranges(graph)} == {(narrow.low, narrow.high)}
    scale, zero = narrow.params.scale_array, int(narrow.params.zero_array)
    x = (np.arange(-2500, 2500, 79) * scale).astype(F32)[:64]

    def rounded(v: Array) -> Array:
        return np.clip(np.rint(v / scale) + zero, narrow.low, narrow.high)

    negated = -((rounded(x) - zero).astype(F32) * scale)
    wanted = {"y": rounded(negated).astype(narrow.params.dtype)}
    apart(intonnx.compile(graph).run({"x": x}), wanted, 0)
    for form in ("qlinear", "qdq"):
        exported = intonnx.to_onnx(graph, form=form)  # type: ignore[arg-type]
        apart(run_onnxruntime(exported, {"x": x}, optimized=False), wanted, 0)


BINARY = ["Add", "Mul", "Sub", "Max"]


@pytest.mark.parametrize("op_type", BINARY)
@pytest.mark.parametrize("out", [MIDDLE, SIGNED])
def test_two_operands(op_type: str, out: Narrow) -> None:
    build = Builder(17)
    (a, one), (b, two) = feed(build, 4, 9, name="a"), feed(build, 4, 9, name="b")
    left = Narrow(out.params.__class__(out.params.dtype, 0.1, 2), -5 if out is SIGNED else 1, 60)
    value = build.node(op_type, [fake(build, a, left), fake(build, b, left)])
    build.output(limited(build, value, out, "y"), out.params.dtype)
    quanta = {"Add": 1, "Mul": 1}.get(op_type, 0)
    check(build, {"a": one, "b": two}, quanta=quanta, kernel=False)


@pytest.mark.parametrize(
    ("op_type", "attrs"),
    [
        ("Sigmoid", {}),
        ("Softmax", {"axis": -1}),
        ("MaxPool", {"kernel_shape": [2, 2]}),
        ("AveragePool", {"kernel_shape": [2, 2], "pads": [1, 0, 0, 1]}),
        ("GlobalAveragePool", {}),
        ("Relu", {}),
        ("Transpose", {"perm": [0, 2, 3, 1]}),
        ("LeakyRelu", {"alpha": 0.3}),
    ],
)
@pytest.mark.parametrize("same", [False, True])
def test_one_operand(op_type: str, attrs: dict[str, Any], same: bool) -> None:
    build = Builder(17)
    x, array = feed(build, 2, 3, 4, 4)
    narrow = Narrow(u8(0.02, 7), 2, 50)
    entering = narrow if same else MIDDLE
    value = build.node(op_type, [fake(build, x, entering)], **attrs)
    build.output(limited(build, value, narrow, "y"), np.uint8)
    pools = op_type in ("AveragePool", "GlobalAveragePool", "Softmax")
    # Float sums, whose order nothing defines: a tie may fall to either side.
    graph = check(build, {"x": array}, quanta=int(pools), literal_quanta=int("Pool" in op_type))
    assert ("u8", 2, 50) in ranges(graph)


def test_several_operands() -> None:
    build = Builder(17)
    (a, one), (b, two) = feed(build, 2, 3, name="a"), feed(build, 2, 5, name="b")
    value = build.node("Concat", [fake(build, a, FOUR), fake(build, b, MIDDLE)], axis=1)
    build.output(build.dequantize(limited(build, value, FOUR), FOUR.params, "y"), F32)
    padded = build.node("Pad", ["y", build.constant("pads", np.asarray([0, 1, 0, 0]))])
    build.output(build.dequantize(limited(build, padded, MIDDLE), MIDDLE.params, "z"), F32)
    check(build, {"a": one, "b": two}, quanta=0)


def test_codes_read_by_others_too_stay_whole() -> None:
    build = Builder(17)
    x, array = feed(build, 30)
    codes = limited(build, x, FOUR)
    build.output(build.dequantize(codes, FOUR.params, "y"), F32)
    build.output(build.dequantize(f"{x}_q", u8(0.2, 0), "whole"), F32)
    graph = check(build, {"x": array}, quanta=0)
    assert ranges(graph) == {("u8", 0, 15)}


def test_codes_of_the_caller() -> None:
    build = Builder(17)
    x = build.feed("x", (20,), np.int8)
    bounds = [build.constant(n, np.int8(v)) for n, v in (("low", -3), ("high", 3))]
    clipped = build.node("Clip", [x, *bounds])
    real = build.dequantize(clipped, s8(0.5, 0))
    build.output(build.quantize(build.node("Neg", [real]), s8(0.5, 0), "y"), np.int8)
    graph = check(build, {"x": RNG.integers(-128, 128, 20).astype(np.int8)}, quanta=0)
    assert ranges(graph) == {("i8", -3, 3)}


@settings(max_examples=25)
@given(
    low=st.integers(-200, 200), high=st.integers(-200, 200), scale=st.floats(0.01, 1),
    zero=st.integers(-128, 127), out_zero=st.integers(-128, 127),
)  # fmt: skip
def test_any_limits(low: int, high: int, scale: float, zero: int, out_zero: int) -> None:
    """Also crossed, equal, and beyond the type: ONNX gives the upper limit where they cross."""
    low, high = (int(np.clip(limit, -128, 127)) for limit in (low, high))
    build = Builder(17)
    x = build.feed("x", (2, 40), F32)
    entering = Narrow(s8(0.05, zero), low, high)
    weights = build.dequantize(build.constant("w", RNG.integers(-9, 9, (40, 3)).astype(np.int8)),
                               s8(0.3, 0))  # fmt: skip
    value = build.node("MatMul", [fake(build, x, entering), weights])
    out = Narrow(s8(scale, out_zero), -100, 90)
    build.output(limited(build, value, out, "y"), np.int8)
    check(build, {"x": RNG.normal(0, 4, (2, 40)).astype(F32)}, literal_quanta=1)


def test_c2_of_a_type_and_its_members() -> None:
    whole = QuantParams(storage=DType.U8, scale=0.5, zero_point=3)
    assert not whole.is_narrow
    assert whole.limited(0, 255) == whole
    assert whole.limited(-5, 300) == whole
    narrow = whole.limited(1, 17)
    assert (narrow.qmin, narrow.qmax, narrow.is_narrow) == (1, 17, True)
    assert whole.limited(17, 1) == whole.limited(1, 1)
    assert whole.covers(narrow)
    assert not narrow.covers(whole)
    assert not whole.covers(QuantParams(storage=DType.U8, scale=0.25, zero_point=3))
    with pytest.raises(ValueError, match="leave the range of u8"):
        QuantParams(storage=DType.U8, scale=0.5, zero_point=3, low=4, high=300)


def test_a_storage_cast_keeps_the_type_true() -> None:
    params = QuantParams(storage=DType.I8, scale=0.5, zero_point=0, low=-4, high=3)
    kinds = {"x": plain(DType.I8, (4,)), "c": quantized(params, (4,)), "y": plain(DType.F32, (4,))}
    nodes = (Node(StorageCast(out=params), ("x",), ("c",)), Node(Dequantize(), ("c",), ("y",)))
    graph = Graph("g", ("x",), ("y",), nodes, kinds)
    found = intonnx.compile(graph).run({"x": np.asarray([-128, -4, 3, 127], np.int8)})
    np.testing.assert_array_equal(found["y"], [-2, -2, 1.5, 1.5])


def test_constants_and_inputs_out_of_range(tmp_path: Path) -> None:
    params = QuantParams(storage=DType.I8, scale=0.5, zero_point=0, low=-4, high=3)
    kinds = {"x": quantized(params, (2,)), "y": plain(DType.F32, (2,))}
    node = Node(Dequantize(), ("x",), ("y",))
    graph = Graph("g", ("x",), ("y",), (node,), kinds)
    graph.save(tmp_path / "graph.intonnx")
    assert intonnx.load(tmp_path / "graph.intonnx") == graph
    with pytest.raises(RunFailure, match="codes from -5 to 3, not from -4 to 3"):
        intonnx.compile(graph).run({"x": np.asarray([-5, 3], np.int8)})
    held = Graph("g", (), ("y",), (node,), kinds, {"x": np.asarray([0, 4], np.int8)})
    with pytest.raises(TextFailure, match="0 to 4 leave the range of i8, -4 to 3"):
        intonnx.parse(str(held), weights=held.constants)
