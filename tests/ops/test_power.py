"""qnn.power against the literal QDQ model in onnxruntime, and exact powers of fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import intonnx
from intonnx.ir.float32 import power
from intonnx.ir.ops.lut import Lut
from intonnx.ir.ops.power import Power
from support import pairs, strategies
from support.models import Array, Builder, Fed, Held, Params, qdq_model, s8, u8
from support.strategies import BinaryCase
from support.wings import check_model, refusal_of


def test_c1_c2_c3() -> None:
    pairs.check_constraints(lambda out: Power(out=out))


@given(strategies.binary_cases(mixed=True), st.booleans())
@settings(max_examples=60)
def test_power_through_every_wing(case: BinaryCase, quantized_input: bool) -> None:
    # onnxruntime's powers are the C library's: a unit in the last place off, now and then.
    pairs.check_pair("Pow", case, quanta=1, quantized_input=quantized_input)


@pytest.mark.parametrize("base", [u8(1 / 64, 0), s8(0.037, -3), u8(0.5, 255), s8(0.02, 127)])
@pytest.mark.parametrize("exponent", [u8(1 / 64, 64), s8(0.05, -7), s8(1, 0)])
@pytest.mark.parametrize("out", [u8(0.0123, 3), s8(0.7, -128)])
def test_every_pair_of_codes(base: Params, exponent: Params, out: Params) -> None:
    pairs.check_every_pair("Pow", BinaryCase(pairs.ALL, pairs.ALL, base, exponent, out))


@pytest.mark.parametrize("shape", [(7, 1), (1,), (7, 5)])
def test_one_exponent_beside_a_row_makes_cubes_of_products(shape: tuple[int, ...]) -> None:
    a = np.arange(35, dtype=np.uint8).reshape(7, 5) * 7
    case = BinaryCase(a, np.full(shape, 3, np.uint8), u8(0.1), u8(1), u8(0.002 * 2**9))
    pairs.check_pair("Pow", case)


@pytest.mark.parametrize(
    ("base", "exponent"), [((35, 1), (1,)), ((7, 5, 1), (1, 1)), ((35, 1), (1, 1))]
)
def test_one_exponent_beside_a_column(base: tuple[int, ...], exponent: tuple[int, ...]) -> None:
    """Where the axes that both have are all 1, onnxruntime sees one base, and many exponents."""
    a = np.arange(35, dtype=np.uint8).reshape(base) * 7
    case = BinaryCase(a, np.full(exponent, 3, np.uint8), u8(0.1), u8(1), u8(0.002 * 2**9))
    pairs.check_pair("Pow", case)


@given(st.integers(-1500, 1500), st.integers(0, 5), st.integers(0, 11))
def test_powers_are_rounded_correctly(numerator: int, bits: int, exponent: int) -> None:
    x = np.float32(numerator * 2.0**-bits)
    found = float(power(np.asarray(x), np.asarray(exponent, np.float32)))
    exact = Fraction(float(x)) ** exponent
    step = Fraction(float(np.spacing(np.float32(abs(found)))))
    # Half a step, and the error of a product in float64.
    assert abs(Fraction(found) - exact) <= step * Fraction(500001, 1000000)


@pytest.mark.parametrize("held", pairs.HELD)
@pytest.mark.parametrize("first", [False, True])
def test_a_constant_operand(held: Params | None, first: bool) -> None:
    pairs.check_constant_operand("Pow", pairs.constant(held), first=first)


@pytest.mark.parametrize("exponent", [[[2], [3], [-1]], [[0], [1], [5]]])
def test_integer_exponents(exponent: Array) -> None:
    pairs.check_constant_operand("Pow", Held(np.array(exponent, np.int64)), first=False)


def test_a_scalar_is_a_table() -> None:
    for held in (Held(np.float32(0.5)), Held(np.int32(3)), Held(np.int8(20), s8(0.1))):
        sides = [Fed("x", (256,), u8(0.02, 3), quantized=True), held]
        graph = check_model(qdq_model("Pow", sides, out=u8(0.05)), {"x": pairs.ALL}, quanta=0)
        assert isinstance(graph.nodes[-1].op, Lut)


def test_real_values_of_two_types_are_refused() -> None:
    build = Builder()
    x = build.operand(Fed("x", (4,), u8(0.02, 3), quantized=True), 0)
    scale, zero = build.constant("s", np.float16(0.1)), build.constant("z", np.uint8(0))
    exponent = build.node("DequantizeLinear", [build.feed("e", (4,), np.uint8), scale, zero])
    build.output(build.quantize(build.node("Pow", [x, exponent]), u8(0.2), "y"), np.uint8)
    code, detail = refusal_of(build.model(), "Pow")
    assert code == "unsupported-type"
    assert "two types" in detail


def test_symbolic_shapes() -> None:
    sides = [Fed(n, ("N", m), u8(0.02, 114), quantized=True) for n, m in (("a", 3), ("b", "M"))]
    graph = intonnx.import_model(qdq_model("Pow", sides, out=u8(0.01, 90)))
    assert graph.types["y"].shape == ("N", 3)


def test_float16_real_values() -> None:
    pairs.check_float16("Pow")


def test_refusals() -> None:
    pairs.check_refusals("Pow")
