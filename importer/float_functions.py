"""Element-wise float operators on arrays, step by step as onnxruntime computes them in float32.

A table of codes must hold what the float operator gives, to the last bit: after the quantizer one
unit in the last place can be a whole code. numpy's own exp, log and tanh depend on the CPU. So each
function below follows onnxruntime 1.32 on x86-64, measured without a difference on 164,007 inputs
(normal, huge, tiny, subnormal, infinite, NaN) with graph optimization off.

Two limits. Log, Softplus, Elu, Selu and Celu are Eigen expressions: four elements at a time by the
polynomials here, while up to three elements at the end of a tensor go through the C library and can
differ in the last bits. The functions of `_ROUNDED`, and Pow with exponents other than 2 and 3, are
the C library's or other polynomials of Eigen's: here the correctly rounded value is used, which
theirs equals or misses by a few units in the last place.

Sources: ONNX operator specifications; MLAS; Eigen GenericPacketMathFunctions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from intonnx.ir.float32 import (
    EXP_POLYNOMIAL,
    fused_multiply_add,
    fused_polynomial,
    parametric_relu,
    power,
    power_of_two,
    split_exponent,
)
from intonnx.ir.types import Array

F32 = np.float32
Attributes = Mapping[str, Any]
Function = Callable[[Sequence[Any], Attributes], Array]
"""From operands (float32 arrays; None for an absent one) and attributes to a float32 array."""

_LOGISTIC_P = (4.37031012579801e-11, 1.15627324459942e-07, 6.08574864600143e-05,
               8.51377133304701e-03, 2.48287947061529e-01)  # fmt: skip
_LOGISTIC_Q = (6.10247389755681e-13, 5.76102136993427e-09, 6.29106785017040e-06,
               1.70198817374094e-03, 1.16817656904453e-01, 9.93151921023180e-01)  # fmt: skip
_TANH_P = (-2.76076847742355e-16, 2.00018790482477e-13, -8.60467152213735e-11, 5.12229709037114e-08,
           1.48572235717979e-05, 6.37261928875436e-04, 4.89352455891786e-03)  # fmt: skip
_TANH_Q = (1.19825839466702e-06, 1.18534705686654e-04, 2.26843463243900e-03,
           4.89352518554385e-03)  # fmt: skip
_ERF_SMALL = (-5.99104969e-4, 4.99339588e-3, -2.67667342e-2, 1.12818025e-1, -3.76124859e-1,
              1.28379151e-1)  # fmt: skip
_ERF_BIG = (1.72948930e-5, -3.83208680e-4, 3.88393435e-3, -2.42545605e-2, 1.06777847e-1,
            6.34846687e-1, 1.28717512e-1)  # fmt: skip
_ERF_EXP = (1.38319808e-3, 8.37550033e-3, 4.16689515e-2, 1.66664466e-1, 4.99999851e-1, 1.0,
            1.0)  # fmt: skip


def logistic(x: Array) -> Array:
    """1 / (1 + exp(-x)): a rational polynomial on [-18, 18], at least 0. MLAS."""
    v = np.minimum(np.maximum(x, F32(-18)), F32(18))
    square = v * v
    p = v * fused_polynomial(square, _LOGISTIC_P)
    return np.maximum(p / fused_polynomial(square, _LOGISTIC_Q) + F32(0.5), F32(0))


def tanh(x: Array) -> Array:
    """A rational polynomial on [-9, 9]. MLAS."""
    v = np.minimum(np.maximum(x, F32(-9)), F32(9))
    square = v * v
    return (v * fused_polynomial(square, _TANH_P)) / fused_polynomial(square, _TANH_Q)


def exp(x: Array) -> Array:
    """The exponential; its power of two is applied in two factors, so subnormals exist. MLAS."""
    v = np.minimum(np.maximum(x, F32(-103.9720840454)), F32(88.7762626647950))
    r, m = split_exponent(np.where(np.isnan(v), F32(0), v))
    normal = np.clip(m, -126, 127)
    rest = power_of_two(m - normal)
    grown = fused_multiply_add(fused_polynomial(r, EXP_POLYNOMIAL), r * rest, rest) * power_of_two(
        normal
    )
    return np.where(np.isnan(x), x, grown)


def erf(x: Array) -> Array:
    """The error function: two polynomials that meet at |x| = 0.921875. MLAS."""
    a = np.minimum(np.abs(np.where(np.isnan(x), F32(0), x)), F32(3.925))
    small = fused_multiply_add(fused_polynomial(a * a, _ERF_SMALL), a, a)
    r, m = split_exponent(-fused_multiply_add(fused_polynomial(a, _ERF_BIG), a, a))
    big = F32(1) - fused_polynomial(r, _ERF_EXP) * power_of_two(m)
    value = np.copysign(np.where(a > F32(0.921875), big, small), x)
    return np.where(np.isnan(x), x, value)


def eigen_exp(x: Array) -> Array:
    """The exponential inside Elu, Selu, Celu and Softplus. Eigen, without fused steps."""
    v = np.minimum(np.maximum(np.where(np.isnan(x), F32(0), x), F32(-104)), F32(88.723))
    m = np.floor(v * F32(1.44269504088896341) + F32(0.5))
    r = (m * F32(-0.693359375) + v).astype(F32)
    r = m * F32(2.12194440e-4) + r
    square = r * r
    even = square * F32(1.37449637986719608306884765625e-3) + F32(4.166965186595916748046875e-2)
    odd = square * F32(8.36894474923610687255859375e-3) + F32(0.16666518151760101318359375)
    even = square * even + F32(0.49999988079071044921875)
    grown = np.ldexp(square * (r * odd + even) + (r + F32(1)), m.astype(np.int32))
    grown = np.where(x < F32(-104), F32(0), np.maximum(grown, v))
    return np.where(np.isnan(x) | (x == np.inf), x, grown)


def log(x: Array) -> Array:
    """The natural logarithm: a rational polynomial on [sqrt(1/2), sqrt(2)). Eigen."""
    mantissa, exponent = np.frexp(x)
    below = mantissa < F32(0.707106781186547524)
    v = (mantissa - F32(1)) + np.where(below, mantissa, F32(0))
    p = v * F32(0.18256296349849254) + F32(1.0000000190281063)
    p = v * (v * p + F32(1.0000000190281136))
    q = v * F32(0.049616247954120038) + F32(0.59923249590823520)
    q = v * (v * q + F32(1.4999999999999927)) + F32(1)
    value = (exponent - below).astype(F32) * F32(0.6931471805599453) + p / q
    value = np.where(x == 0, F32(-np.inf), np.where(x == np.inf, x, value))
    return np.where(x < 0, F32(np.nan), value)


def log1p(x: Array) -> Array:
    """log(1 + x) by Kahan's formula. Eigen."""
    grown = x + F32(1)
    found = log(grown)
    value = x * (found / (grown - F32(1)))
    return np.where((grown == 1) | (grown == found), x, value)


def softplus(x: Array) -> Array:
    """log(1 + exp(x)), reflected for positive x."""
    reflected = x + log1p(eigen_exp(-x))
    return np.where(x > 0, reflected, log1p(eigen_exp(x)))


def hard_sigmoid(x: Array, alpha: float, beta: float) -> Array:
    """clip(alpha * x + beta, 0, 1); the product and the sum are rounded separately."""
    value: Array = np.minimum(np.maximum(F32(alpha) * x + F32(beta), F32(0)), F32(1))
    return value


def _gelu(x: Array, attributes: Attributes) -> Array:
    if attributes.get("approximate", "none") == "tanh":
        inner = x * (F32(0.035677408136300125) * x * x + F32(0.7978845608028654))
        return (F32(0.5) * x) * (tanh(inner) + F32(1))
    return (F32(0.5) * x) * (erf(x * F32(0.7071067811865475)) + F32(1))


def _elu(x: Array, attributes: Attributes) -> Array:
    negative = F32(attributes.get("alpha", 1.0)) * (eigen_exp(x) - F32(1))
    return np.where(x >= 0, x, negative)


def _selu(x: Array, attributes: Attributes) -> Array:
    alpha = F32(attributes.get("alpha", 1.67326319217681884765625))
    gamma = F32(attributes.get("gamma", 1.05070102214813232421875))
    return np.where(x > 0, gamma * x, (gamma * alpha) * (eigen_exp(x) - F32(1)))


def _celu(x: Array, attributes: Attributes) -> Array:
    alpha = F32(attributes.get("alpha", 1.0))
    negative = alpha * (eigen_exp(x / alpha) - F32(1))
    value: Array = np.maximum(x, F32(0)) + np.minimum(negative, F32(0))
    return value


def _shrink(x: Array, attributes: Attributes) -> Array:
    bound, bias = F32(attributes.get("lambd", 0.5)), F32(attributes.get("bias", 0.0))
    return np.where(x < -bound, x + bias, np.where(x > bound, x - bias, F32(0)))


def _leaky_relu(x: Array, attributes: Attributes) -> Array:
    return np.where(x >= 0, x, F32(attributes.get("alpha", 0.01)) * x)


def _hard_sigmoid(x: Array, attributes: Attributes) -> Array:
    return hard_sigmoid(x, attributes.get("alpha", 0.2), attributes.get("beta", 0.5))


def _thresholded_relu(x: Array, attributes: Attributes) -> Array:
    return np.where(x > F32(attributes.get("alpha", 1.0)), x, F32(0))


def _swish(x: Array, attributes: Attributes) -> Array:
    return x * logistic(F32(attributes.get("alpha", 1.0)) * x)


def _power(operands: Sequence[Any], attributes: Attributes) -> Array:
    x, exponent = operands
    return power(x, exponent, cubes=np.ndim(exponent) == 0)


def _clip(operands: Sequence[Any], attributes: Attributes) -> Array:
    value = operands[0]
    for bound, limit in zip(operands[1:], (np.maximum, np.minimum), strict=False):
        if bound is not None:
            value = limit(value, bound)
    return np.asarray(value, F32)


def _fold(step: Callable[[Any, Any], Any]) -> Function:
    def run(operands: Sequence[Any], attributes: Attributes) -> Array:
        value = operands[0]
        for operand in operands[1:]:
            value = step(value, operand)
        return np.asarray(value, F32)

    return run


@dataclass(frozen=True)
class ElementWise:
    """How an element-wise operator of ai.onnx is computed, and how many operands it takes."""

    function: Function
    fewest: int = 1
    most: int = 1


def _plain(function: Callable[[Array], Array]) -> ElementWise:
    return ElementWise(lambda operands, attributes: np.asarray(function(operands[0]), F32))


def _with_attributes(function: Callable[[Array, Attributes], Array]) -> ElementWise:
    return ElementWise(lambda operands, attributes: function(operands[0], attributes))


def _rounded(function: Callable[[Array], Array]) -> ElementWise:
    return _plain(lambda x: function(x.astype(np.float64)).astype(F32))


_ROUNDED: dict[str, Callable[[Array], Array]] = {
    "Acos": np.arccos, "Acosh": np.arccosh, "Asin": np.arcsin, "Asinh": np.arcsinh,
    "Atan": np.arctan, "Atanh": np.arctanh, "Cos": np.cos, "Cosh": np.cosh, "Sin": np.sin,
    "Sinh": np.sinh, "Tan": np.tan,
}  # fmt: skip
UNARY: dict[str, ElementWise] = {
    **{name: _rounded(function) for name, function in _ROUNDED.items()},
    "Abs": _plain(np.abs),
    "Ceil": _plain(np.ceil),
    "Celu": _with_attributes(_celu),
    "Elu": _with_attributes(_elu),
    "Erf": _plain(erf),
    "Exp": _plain(exp),
    "Floor": _plain(np.floor),
    "Gelu": _with_attributes(_gelu),
    "HardSigmoid": _with_attributes(_hard_sigmoid),
    "HardSwish": _plain(lambda x: x * hard_sigmoid(x, 1 / 6, 0.5)),
    "LeakyRelu": _with_attributes(_leaky_relu),
    "Log": _plain(log),
    "Mish": _plain(lambda x: x * tanh(softplus(x))),
    "Neg": _plain(np.negative),
    "Reciprocal": _plain(lambda x: F32(1) / x),
    "Round": _plain(np.rint),
    "Selu": _with_attributes(_selu),
    "Shrink": _with_attributes(_shrink),
    "Sigmoid": _plain(logistic),
    "Sign": _plain(np.sign),
    "Softplus": _plain(softplus),
    "Softsign": _plain(lambda x: (F32(1) / (F32(1) + np.abs(x))) * x),
    "Sqrt": _plain(np.sqrt),
    "Swish": _with_attributes(_swish),
    "Tanh": _plain(tanh),
    "ThresholdedRelu": _with_attributes(_thresholded_relu),
}
"""Operators of one operand, besides Relu, Clip, Identity and Cast."""

FUNCTIONS: dict[str, ElementWise] = {
    **UNARY,
    "Identity": _plain(lambda x: x),
    "Cast": _plain(lambda x: x),
    "Relu": _plain(lambda x: np.maximum(x, F32(0))),
    "Clip": ElementWise(_clip, 1, 3),
    "Add": ElementWise(_fold(np.add), 2, 2),
    "Sub": ElementWise(_fold(np.subtract), 2, 2),
    "Mul": ElementWise(_fold(np.multiply), 2, 2),
    "Div": ElementWise(_fold(np.divide), 2, 2),
    "Pow": ElementWise(_power, 2, 2),
    "PRelu": ElementWise(lambda operands, _: parametric_relu(*operands), 2, 2),
    "Min": ElementWise(_fold(np.minimum), 1, 64),
    "Max": ElementWise(_fold(np.maximum), 1, 64),
    "Sum": ElementWise(_fold(np.add), 1, 64),
}
"""Every operator that may stand in a table's recipe, by its ai.onnx name.

Results are rounded to the type of the step by the caller, which is all that Cast does.
"""
