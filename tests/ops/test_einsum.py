"""qnn.einsum against onnxruntime and numpy's einsum on Python integers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import intonnx
from intonnx.ir.einsum import Equation
from intonnx.ir.ops.einsum import Einsum
from intonnx.ir.types import DType, plain
from support import bigint_linear, strategies
from support.models import Fed, Held, Params, qdq_model, run_inputs, s8, s16, u8, u16
from support.movers import blocked, kind, names_of, shape_of
from support.wings import check_model, refusal_of

SUMS = ["qnn.einsum", "qnn.requantize"]
TWO: list[tuple[str, tuple[int, ...], tuple[int, ...]]] = [
    ("ij,jk->ik", (3, 4), (4, 5)),
    ("bhqd,bhkd->bhqk", (2, 3, 4, 5), (2, 3, 6, 5)),
    ("bij,bjk", (2, 3, 4), (2, 4, 5)),
    ("...ij,...jk->...ik", (2, 3, 4), (2, 4, 5)),
    ("...ij,jk->...ik", (2, 3, 4), (4, 5)),
    ("...a,...b->...ab", (2, 1, 3), (2, 4, 5)),
    ("i,j->ij", (3,), (4,)),
    ("ij,ij->", (3, 4), (3, 4)),
    ("ij,ij->ji", (3, 4), (3, 4)),
    ("ijk,kl->il", (2, 3, 4), (4, 5)),
    ("abc,cd->dab", (2, 3, 4), (4, 5)),
    ("b i j , b j k -> i k", (2, 3, 4), (2, 4, 5)),
    ("iij,j->i", (3, 3, 4), (4,)),
    ("Ab,bA->A", (3, 4), (4, 3)),
]
ONE: list[tuple[str, tuple[int, ...]]] = [
    ("ij->i", (3, 4)),
    ("ii", (3, 3)),
    ("ii->i", (3, 3)),
    ("...i->...", (2, 3, 4)),
    ("iji->j", (3, 4, 3)),
]
PARAMS = [(u8(0.02, 114), u8(0.01, 9)), (s8(0.03, -128), s8(0.02, 5)), (u16(1e-4, 7), s16(1e-4))]


def model(equation: str, *operands: Any, out: Params | None) -> Any:
    return qdq_model("Einsum", list(operands), out=out, attrs={"equation": equation})


# -- constraints ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("constraint", "equation", "operands"),
    [
        ("C1", "ij->i", [plain(DType.U8, (3, 4))]),
        ("C1", "ij->i", [blocked((4, 4), 0, 2)]),
        ("C1", "ij->j", [kind((3, 4), axis=0, n=3)]),
        ("C1", "ij,jk->ijk", [kind((3, 4), axis=1, n=4), kind((4, 5))]),
        ("C1", "ij,jk->ik", [kind((3, 4), axis=0, n=3), kind((4, 5), axis=1, n=5)]),
        ("C2", "ij->i", [kind((3, 4, 5))]),
        ("C2", "ij,jk", [kind((3, 4))]),
        ("C2", "ij->ii", [kind((3, 4))]),
        ("C2", "ij->k", [kind((3, 4))]),
        ("C2", "...i->i", [kind((3, 4))]),
        ("C2", "i1->i", [kind((3, 4))]),
        ("C2", "ij->i", [kind(None)]),
        ("C3", "ij,jk", [kind((3, 4)), kind((5, 6))]),
        ("C3", "ii", [kind((3, 4))]),
    ],
)
def test_einsum_refuses_c1_to_c3(constraint: str, equation: str, operands: Any) -> None:
    with pytest.raises(intonnx.TypeFailure, match=constraint):
        Einsum(equation=equation).infer(operands)


def test_einsum_refuses_c4() -> None:
    large = kind((3,)).params.model_copy(update={"scale": np.float32(1e30)})
    operand = kind((3,)).model_copy(update={"quant": large})
    with pytest.raises(intonnx.TypeFailure, match="C4"):
        Einsum(equation="i,i").infer([operand, operand])


def test_shapes_and_letters() -> None:
    assert Equation.of("ba", [2]).result == "ab"
    assert Equation.of("...b,b", [3, 1]).operands == ("acb", "b")
    found = Einsum(equation="nij,jk->kni").infer([kind(("n", 3, 4)), kind((4, 5), axis=1, n=5)])[0]
    assert (found.shape, found.params.axis, found.dtype) == ((5, "n", 3), 0, DType.I32)
    assert shape_of(Einsum(equation="ab,b->a"), kind((3, 1)), kind((4,))) == (3,)


# -- against onnxruntime --------------------------------------------------------------------------


@pytest.mark.parametrize(("x", "y"), PARAMS)
@pytest.mark.parametrize(("equation", "a", "b"), TWO)
def test_two_operands(
    equation: str, a: tuple[int, ...], b: tuple[int, ...], x: Params, y: Params
) -> None:
    codes = np.random.default_rng(0).integers(0, 100, b)
    for quantized, right in (
        (True, Fed("b", b, x, quantized=True)),
        (False, Held(codes, Params(x.dtype, 0.03, 50))),
    ):
        given_model = model(equation, Fed("a", a, x, quantized=quantized), right, out=y)
        graph = check_model(given_model, run_inputs(given_model), literal_quanta=1)
        assert names_of(graph) == SUMS


@pytest.mark.parametrize(("x", "y"), PARAMS)
@pytest.mark.parametrize(("equation", "a"), ONE)
def test_one_operand(equation: str, a: tuple[int, ...], x: Params, y: Params) -> None:
    for quantized in (True, False):
        given_model = model(equation, Fed("a", a, x, quantized=quantized), out=y)
        graph = check_model(given_model, run_inputs(given_model), literal_quanta=1)
        assert names_of(graph) == SUMS


@pytest.mark.parametrize("equation", ["ijk->kij", "kji", "...ij->...ji", "i...->...i"])
def test_an_exchange_of_axes_is_a_transpose(equation: str) -> None:
    given_model = model(equation, Fed("a", (2, 3, 4), u8(0.1, 3), quantized=True), out=u8(0.1, 3))
    graph = check_model(given_model, run_inputs(given_model), quanta=0)
    assert names_of(graph) == ["qnn.transpose"]


@pytest.mark.parametrize("axis", [0, 1])
def test_weights_with_a_scale_for_each_channel(axis: int) -> None:
    weights = np.random.default_rng(0).integers(-127, 128, (5, 4) if axis == 0 else (4, 5))
    per_axis = s8(np.arange(1, 6) / 50, [0, 3, -3, 127, -128], axis=axis)
    equation = "oc,bcl->bol" if axis == 0 else "co,bcl->bol"
    x = Fed("x", (2, 4, 6), u8(0.02, 114), quantized=True)
    given_model = model(equation, Held(weights, per_axis), x, out=u8(0.3, 128))
    graph = check_model(given_model, run_inputs(given_model), literal_quanta=1)
    assert names_of(graph) == SUMS


def test_without_a_quantizer_the_sums_are_dequantized() -> None:
    a, b = (Fed(name, (3, 3), u8(0.25, 114), quantized=True) for name in "ab")
    given_model = model("ij,jk->ik", a, b, out=None)
    assert names_of(check_model(given_model, run_inputs(given_model))) == ["qnn.einsum"]


def test_sums_beyond_32_bits() -> None:
    x = u16(1e-4, 0)
    a, b = (Fed(name, (2, 40), x, quantized=True) for name in "ab")
    given_model = model("ij,kj->ik", a, b, out=u8(10.0, 0))
    feeds = {name: np.full((2, 40), 65535, np.uint16) for name in "ab"}
    check_model(given_model, feeds, literal_quanta=1, export_quanta=1)


# -- against Python integers ----------------------------------------------------------------------


@settings(max_examples=60)
@given(st.data())
def test_codes_are_those_of_python_integers(data: st.DataObject) -> None:
    equation, a_shape, b_shape = data.draw(st.sampled_from(TWO))
    a, b = data.draw(strategies.params(wide=True)), data.draw(strategies.params(wide=True))
    y = data.draw(strategies.params(wide=True))
    feeds = {
        "a": data.draw(strategies.codes(a.dtype, a_shape)),
        "b": data.draw(strategies.codes(b.dtype, b_shape)),
    }
    given_model = model(
        equation, Fed("a", a_shape, a, quantized=True), Fed("b", b_shape, b, quantized=True), out=y
    )
    found = intonnx.compile(intonnx.import_model(given_model)).run(feeds)["y"]
    values = [
        feeds[name].astype(object) - int(params.zero_array) for name, params in (("a", a), ("b", b))
    ]
    sums = np.einsum(equation.replace(" ", ""), *values)
    k = np.float32(a.scale_array * b.scale_array) / y.scale_array
    v = np.asarray(sums).astype(np.int64).astype(np.float32) * k
    np.testing.assert_array_equal(found, bigint_linear.round_to_codes(v, y.zero_array))


def test_text_form_and_multiply_accumulates() -> None:
    x = Fed("x", ("n", 4, 6), u8(0.02, 114), quantized=True)
    graph = intonnx.import_model(model("oc,bcl->bol", Held(np.ones((5, 4)), s8(0.1)), x,
                                       out=u8(0.3)))  # fmt: skip
    assert intonnx.parse(str(graph), weights=graph.constants) == graph
    node = next(node for node in graph.nodes if node.op.name == "qnn.einsum")
    operands = graph.operand_types(node)
    results = tuple(graph.types[name] for name in node.results)
    assert node.op.multiply_accumulates(operands, results) == 5 * 4 * 6
    for batch in (0, 3):
        codes = np.zeros((batch, 4, 6), np.uint8)
        assert intonnx.compile(graph).run({"x": codes})["y"].shape == (batch, 5, 6)


# -- what stays float -----------------------------------------------------------------------------


def test_refusals() -> None:
    a = Fed("a", (3, 4), u8(0.1), quantized=True)
    code, detail = refusal_of(model("ij,jk->ik", a, Fed("b", (4, 5)), out=u8(0.1)), "Einsum")
    assert code == "input-not-quantized"
    assert "'b'" in detail
    three = model("ij,ij,ij->i", a, Held(np.ones((3, 4)), s8(0.1)), Held(np.ones((3, 4)), s8(0.1)),
                  out=u8(0.1))  # fmt: skip
    assert refusal_of(three, "Einsum")[0] == "unsupported-attribute"
    shared = Held(np.ones((4, 5)), s8([0.1, 0.2, 0.3, 0.4], [0] * 4, axis=0))
    assert refusal_of(model("ij,jk->ik", a, shared, out=u8(0.1)), "Einsum")[0] == (
        "unsupported-attribute"
    )
