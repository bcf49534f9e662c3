"""Element-wise operators of one and two operands."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from support.models import Params

from .drawing import Draw
from .patterns import JOINS, MOVES, WIDE, Pattern

X = (2, 3, 4, 5)

# -- two operands -------------------------------------------------------------------------------


def pair(op: str, d: Draw, a: tuple[int, ...] = X, b: tuple[int, ...] = X) -> str:
    return d.op(op, d.x(a, "a"), d.x(b, "b", factor=0.5))


def itself(op: str, d: Draw) -> str:
    x = d.x(X)
    return d.op(op, x, x)


def mixed(op: str, d: Draw) -> str:
    other = np.int8 if np.dtype(d.storage) == np.uint8 else np.uint8
    return d.op(op, d.x(X, "a"), d.x(X, "b", storage=other, factor=0.5))


def held(op: str, d: Draw, shape: tuple[int, ...] = (3, 1, 1), *, first: bool = False) -> str:
    sides = [d.x(X), d.held(shape, d.storage, scale=0.03)[0]]
    return d.op(op, *(sides[::-1] if first else sides))


def real(op: str, d: Draw, shape: tuple[int, ...] = (3, 1, 1), *, first: bool = False) -> str:
    sides = [d.x(X), d.reals(*shape)]
    return d.op(op, *(sides[::-1] if first else sides))


def power(d: Draw, exponent: float) -> str:
    return d.op("Pow", d.x(X, factor=0.5), d.constant(np.float32(exponent)))


def powers(d: Draw) -> str:
    """Bases of both signs; most exponents are no integers, so half of the results are NaN."""
    return d.op("Pow", d.x(X, "a", factor=0.25), d.x(X, "b", factor=0.2))


def relation(op: str, d: Draw) -> None:
    """Many pairs are equal: the second operand has the scale of the first, or twice that."""
    a = d.params("a")
    b = Params(a.dtype, np.float32(a.scale * (2 if d.seed else 1)), a.zero_point)
    d.leave(d.op(op, d.x(X, "a", params=a), d.x(X, "b", params=b)), np.bool_)


def _pairs(op: str, quanta: tuple[int, int], kernel: str = "") -> list[Pattern]:
    """All of the list for Add and Mul."""
    name = op.lower()
    forms = {
        "": partial(pair, op),
        "-broadcast": partial(pair, op, b=(3, 1, 1)),
        "-broadcast-first": partial(pair, op, a=(4, 1)),
        "-scalar": partial(held, op, shape=()),
        "-constant": partial(held, op),
        "-itself": partial(itself, op),
    }
    made = [
        Pattern(f"{name}{suffix}", build, quanta, kernel=kernel) for suffix, build in forms.items()
    ]
    made += [
        Pattern(f"{name}-float-constant", partial(real, op), quanta),
        Pattern(f"{name}-float-scalar", partial(real, op, shape=()), quanta),
        Pattern(f"{name}-mixed-types", partial(mixed, op), quanta),
        Pattern(f"{name}-16-bit", partial(pair, op), quanta, WIDE[2:]),
        Pattern(f"{name}-16-bit-broadcast", partial(pair, op, b=(3, 1, 1)), quanta, WIDE[2:]),
    ]
    return made


BINARY: list[Pattern] = [
    *_pairs("Add", JOINS, "QLinearAdd"),
    *_pairs("Mul", JOINS, "QLinearMul"),
    Pattern("sub", partial(pair, "Sub"), JOINS),
    Pattern("sub-broadcast", partial(pair, "Sub", b=(3, 1, 1)), JOINS),
    Pattern("sub-constant", partial(held, "Sub"), JOINS),
    Pattern("sub-from-constant", partial(held, "Sub", first=True), JOINS),
    Pattern("sub-float-scalar", partial(real, "Sub", shape=()), JOINS),
    Pattern("div", partial(pair, "Div")),
    Pattern("div-broadcast", partial(pair, "Div", b=(3, 1, 1))),
    Pattern("div-constant", partial(held, "Div")),
    Pattern("div-of-float-scalar", partial(real, "Div", shape=(), first=True)),
    Pattern("div-float-constant", partial(real, "Div")),
    Pattern("pow-square", partial(power, exponent=2.0)),
    Pattern("pow-root", partial(power, exponent=0.5)),
    Pattern("pow", powers),
    Pattern("min", partial(pair, "Min")),
    Pattern("min-constant", partial(held, "Min")),
    Pattern("min-float-scalar", partial(real, "Min", shape=())),
    Pattern("max", partial(pair, "Max")),
    Pattern("max-constant", partial(held, "Max")),
    Pattern("max-broadcast", partial(pair, "Max", b=(3, 1, 1))),
    Pattern("prelu", partial(held, "PRelu")),
    Pattern("prelu-float-slope", partial(real, "PRelu")),
    Pattern("prelu-activation-slope", partial(pair, "PRelu", b=(3, 1, 1))),
    Pattern("equal", partial(relation, "Equal")),
    Pattern("greater", partial(relation, "Greater")),
    Pattern("less-or-equal", partial(relation, "LessOrEqual")),
]

# -- one operand --------------------------------------------------------------------------------


def unary(op: str, d: Draw, factor: float = 1.0, at: int | None = None, **attributes: Any) -> None:
    """`at` puts the zero point of the input at an end or in the middle."""
    x = d.x(X, params=d.params("x", factor=factor, at=at))
    d.finish(d.op(op, x, **attributes), at=None)


def relu(d: Draw, *, same: bool) -> None:
    params = d.params("x", at=1)
    value = d.op("Relu", d.x(X, params=params))
    d.finish(value, params if same else d.fitted(value, "y", at=1))


def clip(d: Draw, low: float | None, high: float | None) -> str:
    bounds = ["" if v is None else d.constant(np.float32(v)) for v in (low, high)]
    return d.op("Clip", d.x(X), *bounds)


def silu_with_quantizers(d: Draw) -> str:
    x = d.x(X)
    return d.op("Mul", x, d.between(d.op("Sigmoid", x)))


def silu(d: Draw) -> str:
    x = d.x(X)
    return d.op("Mul", x, d.op("Sigmoid", x))


def hard_swish(d: Draw) -> str:
    x = d.x(X)
    return d.op("Mul", x, d.op("HardSigmoid", x, alpha=1 / 6, beta=0.5))


def gelu_of_erf(d: Draw) -> str:
    x = d.x(X)
    inner = d.op("Erf", d.op("Div", x, d.constant(np.float32(np.sqrt(2)))))
    gate = d.op("Add", inner, d.constant(np.float32(1)))
    return d.op("Mul", d.op("Mul", x, gate), d.constant(np.float32(0.5)))


def _unary(name: str, op: str, **options: Any) -> Pattern:
    kernel, storages = options.pop("kernel", ""), options.pop("storages", WIDE[:2])
    opset = options.pop("opset", 21)
    return Pattern(name, partial(unary, op, **options), MOVES, storages, kernel=kernel, opset=opset)


UNARY: list[Pattern] = [
    _unary("leaky-relu", "LeakyRelu", alpha=0.1),
    _unary("sigmoid", "Sigmoid", storages=WIDE),
    Pattern("relu-zero-in-the-middle", partial(relu, same=False), storages=WIDE),
    Pattern("relu-same-scale", partial(relu, same=True), storages=WIDE),
    Pattern("clip", partial(clip, low=0.0, high=6.0), storages=WIDE),
    Pattern("clip-below", partial(clip, low=-1.0, high=None)),
    Pattern("clip-narrow", partial(clip, low=-0.7, high=1.3)),
    _unary("hard-sigmoid", "HardSigmoid"),
    _unary("hard-swish", "HardSwish"),
    Pattern("hard-swish-of-two", hard_swish),
    _unary("tanh", "Tanh", storages=WIDE, factor=0.5),
    _unary("gelu", "Gelu"),
    _unary("gelu-tanh", "Gelu", approximate="tanh"),
    Pattern("gelu-of-erf", gelu_of_erf),
    _unary("erf", "Erf", factor=0.5),
    _unary("sqrt", "Sqrt"),
    _unary("elu", "Elu"),
    _unary("selu", "Selu"),
    _unary("celu", "Celu"),
    _unary("exp", "Exp", factor=0.5),
    _unary("log", "Log"),
    _unary("abs", "Abs"),
    _unary("neg", "Neg", storages=WIDE),
    _unary("softplus", "Softplus"),
    _unary("softsign", "Softsign"),
    _unary("mish", "Mish"),
    _unary("reciprocal", "Reciprocal"),
    _unary("floor", "Floor"),
    _unary("ceil", "Ceil"),
    _unary("round", "Round"),
    _unary("sign", "Sign"),
    _unary("sin", "Sin"),
    _unary("thresholded-relu", "ThresholdedRelu"),
    Pattern("silu", silu),
    Pattern("silu-with-quantizers", silu_with_quantizers, JOINS),
]

ELEMENTWISE = BINARY + UNARY
