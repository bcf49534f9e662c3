"""qnn.scatter_nd and qnn.scatter_elements: constraints, and both through every wing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import intonnx
from intonnx.ir.errors import RunFailure, TypeFailure
from intonnx.ir.ops.scatter_nd import ScatterElements, ScatterNd
from intonnx.ir.types import DType, TensorType, plain, quantized
from support.models import (
    MICROSOFT,
    Builder,
    Fed,
    Held,
    Params,
    qdq_model,
    run_inputs,
    s8,
    s16,
    u8,
)
from support.movers import check_same, names_of
from support.selections import OUT, TRIPLES, check_selection, check_types, refused

RNG = np.random.default_rng(0)
OPS = [ScatterNd(out=OUT), ScatterElements(axis=1, out=OUT)]
ROWS = Held(np.array([[0, 2], [-1, -3], [1, 1]]))
"""Coordinates into [2, 3, 4], of slices [4]."""
PLACES = Held(np.array([[[0, 1, 0, -1]], [[2, -3, 1, 1]]]))
"""Coordinates along axis 1 of [2, 3, 4]."""
CASES: list[tuple[str, Held, tuple[int, ...], dict[str, Any]]] = [
    ("ScatterND", ROWS, (3, 4), {}),
    ("ScatterElements", PLACES, (2, 1, 4), {"axis": 1}),
]
NAMES = {"ScatterND": "qnn.scatter_nd", "ScatterElements": "qnn.scatter_elements"}


def codes(*shape: int | str) -> TensorType:
    return quantized(OUT, shape)


def numbers(*shape: int | str) -> TensorType:
    return plain(DType.I64, shape)


# -- constraints ----------------------------------------------------------------------------------


def test_c1_types() -> None:
    check_types(OPS[0], [(1, numbers(2, 1))], [(2, 3), (2, 3)])
    check_types(OPS[1], [(1, numbers(2, 3))], [(2, 3), (2, 3)])


@pytest.mark.parametrize("op", OPS)
def test_c2_the_indices_are_integers(op: ScatterNd | ScatterElements) -> None:
    for indices in (codes(2, 3), plain(DType.F32, (2, 3))):
        with pytest.raises(TypeFailure, match="C2"):
            op.infer([codes(2, 3), indices, codes(2, 3)])


def test_scatter_nd_c3_the_slices() -> None:
    for indices, updates in (
        (numbers(2, 3), codes(2)),
        (numbers(), codes(2)),
        (numbers(5, 1), codes(5, 2)),
        (numbers(5, 1), codes(5, 3, 1)),
        (numbers(5, 2), codes(4)),
    ):
        with pytest.raises(TypeFailure, match="C3"):
            OPS[0].infer([codes(2, 3), indices, updates])
    for indices, updates in (
        (numbers("K", 1), codes("K", 3)),
        (numbers(0, 2), codes(0)),
        (numbers(7, 0), codes(7, 2, 3)),
        (numbers(7, "k"), codes(7)),
    ):
        assert OPS[0].infer([codes(2, 3), indices, updates]) == (codes(2, 3),)


def test_scatter_elements_c3_the_shapes() -> None:
    for indices, updates in (
        (numbers(2), codes(2)),
        (numbers(3, 3), codes(3, 3)),
        (numbers(2, 2), codes(2, 3)),
    ):
        with pytest.raises(TypeFailure, match="C3"):
            OPS[1].infer([codes(2, 3), indices, updates])
    assert OPS[1].infer([codes("N", 3), numbers(1, 9), codes(1, 9)]) == (codes("N", 3),)


def test_scatter_elements_c4_the_axis() -> None:
    unknown = quantized(OUT, None)
    with pytest.raises(TypeFailure, match="C4"):
        ScatterElements(axis=2, out=OUT).infer([codes(2, 3), numbers(2, 3), codes(2, 3)])
    with pytest.raises(TypeFailure, match="C4"):
        ScatterElements(axis=-1, out=OUT).infer([unknown, numbers(2, 3), codes(2, 3)])
    assert OPS[1].infer([unknown, numbers(2, 3), codes(2, 3)]) == (unknown,)


# -- through every wing ---------------------------------------------------------------------------


@pytest.mark.parametrize(("op_type", "indices", "shape", "attrs"), CASES)
@pytest.mark.parametrize("params", TRIPLES)
@pytest.mark.parametrize("fed_codes", [False, True])
def test_equal_and_other_parameters(
    op_type: str,
    indices: Held,
    shape: tuple[int, ...],
    attrs: dict[str, Any],
    params: tuple[Params, ...],
    fed_codes: bool,
) -> None:
    data, updates, out = params
    inputs = [Fed("x", (2, 3, 4), data, fed_codes), indices, Fed("u", shape, updates, fed_codes)]
    graph = check_selection(op_type, inputs, out, NAMES[op_type], **attrs)
    if {np.dtype(p.dtype).itemsize for p in params} == {1} or data == updates == out:
        exported = [node.op_type for node in intonnx.to_onnx(graph).graph.node]
        assert exported.count("DequantizeLinear") == 0


@pytest.mark.parametrize(("op_type", "indices", "shape", "attrs"), CASES)
@pytest.mark.parametrize("held", [None, s8(0.7, 3), s16(0.001, 3)])
@pytest.mark.parametrize("first", [False, True])
def test_constants(
    op_type: str,
    indices: Held,
    shape: tuple[int, ...],
    attrs: dict[str, Any],
    held: Params | None,
    first: bool,
) -> None:
    size = (2, 3, 4) if first else shape
    value = RNG.standard_normal(size) if held is None else RNG.integers(-90, 90, size)
    constant = Held(value.astype(np.float32) if held is None else value, held)
    params = u8(0.02, 114)
    inputs = [constant, indices, Fed("u", shape, params)] if first else [
        Fed("x", (2, 3, 4), params), indices, constant,
    ]  # fmt: skip
    check_selection(op_type, inputs, u8(0.03, 90), NAMES[op_type], **attrs)


@pytest.mark.parametrize(("op_type", "indices", "shape", "attrs"), CASES)
@pytest.mark.parametrize("opset", [11, 13, 16, 18])
def test_at_every_opset(
    op_type: str, indices: Held, shape: tuple[int, ...], attrs: dict[str, Any], opset: int
) -> None:
    inputs = [Fed("x", (2, 3, 4), u8(0.1, 3)), indices, Fed("u", shape, u8(0.2, 9))]
    check_selection(op_type, inputs, u8(0.2, 5), NAMES[op_type], opset=opset, **attrs)


def test_scatter_of_opset_10() -> None:
    inputs = [Fed("x", (2, 3, 4), u8(0.1, 3)), PLACES, Fed("u", (2, 1, 4), u8(0.2, 9))]
    model = qdq_model("Scatter", inputs, out=u8(0.2, 5), attrs={"axis": -2}, opset=10,
                      qdq_domain=MICROSOFT)  # fmt: skip
    assert "qnn.scatter_elements" in names_of(check_same(model))


def test_the_last_of_several_updates_stays() -> None:
    inputs = [Fed("x", (4,), u8(0.1, 3)), Held(np.array([[1], [1], [-3], [0]])),
              Fed("u", (4,), u8(0.1, 3))]  # fmt: skip
    check_selection("ScatterND", inputs, u8(0.1, 3), "qnn.scatter_nd")
    inputs[1] = Held(np.array([1, 1, -3, 0]))
    check_selection("ScatterElements", inputs, u8(0.1, 3), "qnn.scatter_elements")


@pytest.mark.parametrize(("op_type", "indices", "shape", "attrs"), CASES)
def test_indices_of_run_time(
    op_type: str, indices: Held, shape: tuple[int, ...], attrs: dict[str, Any]
) -> None:
    inputs = [
        Fed("x", (2, 3, 4), u8(0.1, 3), quantized=True),
        Fed("i", np.shape(indices.value), dtype=np.int64),
        Fed("u", shape, u8(0.1, 3), quantized=True),
    ]
    model = qdq_model(op_type, inputs, out=u8(0.1, 3), attrs=attrs)
    given = np.random.default_rng(0).integers(0, 255, (2, 3, 4)).astype(np.uint8)
    feeds = {"x": given, "i": indices.value, "u": np.resize(given, shape)}
    graph = check_same(model, feeds)
    with pytest.raises(RunFailure, match="out of bounds"):
        intonnx.compile(graph).run({**feeds, "i": indices.value + 9})


def test_the_quantizer_moves_up_to_a_convolution() -> None:
    build = Builder()
    x = build.operand(Fed("x", (1, 2, 5, 5), u8(0.02, 9), quantized=True), 0)
    conv = build.node("Conv", [x, build.operand(Held(np.eye(2).reshape(2, 2, 1, 1), s8(0.01)), 1)])
    rows = build.constant("rows", np.array([[0, 1]]))
    updates = build.operand(Fed("u", (1, 5, 5), s8(0.1, 3), quantized=True), 2)
    written = build.node("ScatterND", [conv, rows, updates])
    build.output(build.quantize(written, s8(0.05, 3), "y"), np.int8)
    graph = check_same(build.model(), run_inputs(build.model()))
    assert names_of(graph) == ["qnn.conv2d", "qnn.requantize", "qnn.scatter_nd"]


def test_codes_that_the_model_writes_itself() -> None:
    build = Builder()
    data = build.quantize(build.feed("x", (4,), np.float32), u8(0.1, 3), "xq")
    updates = build.quantize(build.feed("u", (1,), np.float32), u8(0.1, 3), "uq")
    rows = build.constant("rows", np.array([[2]]))
    written = build.node("ScatterND", [data, rows, updates])
    build.output(build.dequantize(written, u8(0.1, 3), "y"), np.float32)
    assert "qnn.scatter_nd" in names_of(check_same(build.model()))


def test_refusals() -> None:
    x, updates = Fed("x", (2, 3, 4), u8(0.1, 3)), Fed("u", (3, 4), u8(0.1, 3))
    model = qdq_model("ScatterND", [x, ROWS, updates], out=u8(0.1), attrs={"reduction": "add"})
    refused(model, "ScatterND", "unsupported-attribute", "reduction 'add'")
    model = qdq_model("ScatterND", [x, ROWS, Fed("u", (3, 4))])
    refused(model, "ScatterND", "input-not-quantized", "'u' arrives as float")
    model = qdq_model("ScatterND", [x, ROWS, Fed("u", (3, 4), u8(0.2))])
    refused(model, "ScatterND", "output-not-quantized", "cannot join")
