"""The numerics `fixed` in Python's whole numbers and fractions: plain, slow, obviously right."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import hypothesis.strategies as st
import numpy as np

from intonnx.ir.graph import Node
from intonnx.ir.op import Op
from intonnx.ir.types import DType, QuantParams, TensorType, plain, quantized
from intonnx.lowering import integer
from intonnx.lowering.integer.kernel import Context, kernels
from intonnx.lowering.numerics import Numerics
from support.models import Array
from support.strategies import scales

Pair = tuple[int, int]
HALF = Fraction(1, 2)
NARROW = (DType.U8, DType.I8)
WIDE = (*NARROW, DType.U16, DType.I16)


# -- multipliers ----------------------------------------------------------------------------------


def decompose(factor: Fraction) -> Pair:
    """m and shift with factor = m * 2^(shift - 31), nearest, m from 2^30 to 2^31 - 1."""
    shift = 0
    while abs(factor) >= Fraction(2) ** shift:
        shift += 1
    while factor and abs(factor) < Fraction(2) ** (shift - 1):
        shift -= 1
    m = round(factor * Fraction(2) ** (31 - shift))
    return (m // 2, shift + 1) if abs(m) == 2**31 else (m, shift)


def value(pair: Pair) -> Fraction:
    """The factor that m and shift stand for."""
    return pair[0] * Fraction(2) ** (pair[1] - 31)


def half_up(x: Fraction) -> int:
    """The nearest whole number, halves upwards."""
    return math.floor(x + HALF)


# -- codes ----------------------------------------------------------------------------------------


def scale_of(params: QuantParams) -> Fraction:
    """The scale of per-tensor parameters, exactly."""
    return Fraction(float(params.scalar_scale))


def code(quanta: int, out: QuantParams) -> int:
    """The code of a whole number of quanta."""
    return min(max(quanta + out.scalar_zero_point, out.qmin), out.qmax)


def centred(codes: Array, params: QuantParams) -> list[int]:
    """Codes less their zero point, flat."""
    return [int(c) - params.scalar_zero_point for c in np.ravel(codes)]


def reals(codes: Array, params: QuantParams) -> list[Fraction]:
    """Real values, exactly, flat."""
    return [whole * scale_of(params) for whole in centred(codes, params)]


def assert_near(
    found: Array, real: Sequence[Fraction], out: QuantParams, slack: Fraction = Fraction(1, 1 << 12)
) -> None:
    """Every code is within half a quantum of the real value, limited to the range, and a slack."""
    low, high = out.qmin - out.scalar_zero_point, out.qmax - out.scalar_zero_point
    for got, wanted in zip(centred(found, out), real, strict=True):
        quanta = min(max(wanted / scale_of(out), Fraction(low)), Fraction(high))
        assert abs(got - quanta) <= HALF + slack, (got, float(quanta))


# -- operators ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Given:
    """An operand: its array and parameters (None for real values), and whether it is constant."""

    array: Array
    params: QuantParams | None = None
    constant: bool = False

    @property
    def kind(self) -> TensorType:
        """Its type."""
        if self.params is not None:
            return quantized(self.params, self.array.shape)
        return plain(DType.F32, self.array.shape)


def run_op(op: Op, operands: Sequence[Given], numerics: Numerics = "fixed") -> Array:
    """The first result of an operator."""
    integer.load_all()
    kinds = [operand.kind for operand in operands]
    constants = tuple(operand.array if operand.constant else None for operand in operands)
    context = Context(tuple(kinds), tuple(op.infer(kinds)), constants, numerics)
    kernel = kernels.build(Node(op, (), ()), context)
    return np.asarray(kernel([operand.array for operand in operands])[0])


def assert_one_quantum(op: Op, operands: Sequence[Given], found: Array) -> None:
    """The codes are within one of those of the numerics `qlinear`."""
    other = run_op(op, operands, "qlinear")
    assert (found.dtype, found.shape) == (other.dtype, other.shape)
    apart = np.abs(found.astype(np.int64) - other.astype(np.int64))
    assert apart.max(initial=0) <= 1


# -- strategies -----------------------------------------------------------------------------------


def params(storage: DType, scale: float, zero_point: int) -> QuantParams:
    """Per-tensor parameters."""
    return QuantParams(storage=storage, scale=np.float32(scale), zero_point=np.asarray(zero_point))


@st.composite
def drawn_params(
    draw: st.DrawFn,
    storages: Sequence[DType] = WIDE,
    scale: st.SearchStrategy[float] | None = None,
) -> QuantParams:
    """Zero points at the ends, in the middle and anywhere; scales that make ties."""
    storage = draw(st.sampled_from(storages))
    middle = (storage.low + storage.high + 1) // 2
    telling = st.sampled_from([storage.low, middle, storage.high, storage.low + 1])
    zero = draw(telling | st.integers(storage.low, storage.high))
    return params(storage, draw(scales(1e-2, 10.0) if scale is None else scale), zero)


def drawn_codes(params: QuantParams, shape: Sequence[int]) -> st.SearchStrategy[Array]:
    """Codes, many of them at the ends of the range and next to the zero point."""
    low, high, zero = params.storage.low, params.storage.high, params.scalar_zero_point

    def make(seed: int) -> Array:
        rng = np.random.default_rng(seed)
        anything = rng.integers(low, high + 1, shape)
        near = np.clip(zero + rng.integers(-3, 4, shape), low, high)
        ends = rng.choice(np.asarray([low, high]), shape)
        chosen = np.choose(rng.integers(0, 4, shape), [anything, anything, near, ends])
        return chosen.astype(params.storage.numpy)

    return st.integers(0, 1 << 16).map(make)


def fitted(draw: st.DrawFn, real: Sequence[Fraction], storages: Sequence[DType]) -> QuantParams:
    """Parameters of a result whose range holds a part of these values, or all of them."""
    largest = float(max((abs(v) for v in real), default=Fraction(1))) or 1.0
    storage = draw(st.sampled_from(storages))
    part = draw(st.sampled_from([1e-6, 0.05, 0.5, 1.0, 3.0]))
    scale = float(np.float32(largest * part / (storage.high - storage.low)))
    return draw(drawn_params([storage], st.just(max(scale, 1e-20))))


Real = Callable[[Fraction, Fraction], Fraction]
