"""The float32 kernels of onnxruntime 1.32 on x86 with FMA3 (MLAS and Eigen), step by step.

Measured with graph optimization off; each is bit-exact for every finite float32 tried (see
tests/test_oracles.py). Elements do not depend on their place in the array, so a 256-entry table
made with these equals the operator's output.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from support.float32 import F32, Array, chain, f32, fma

_ALPHA_LOGISTIC = [
    4.37031012579801e-11,
    1.15627324459942e-07,
    6.08574864600143e-05,
    8.51377133304701e-03,
    2.48287947061529e-01,
]
_BETA_LOGISTIC = [
    6.10247389755681e-13,
    5.76102136993427e-09,
    6.29106785017040e-06,
    1.70198817374094e-03,
    1.16817656904453e-01,
    9.93151921023180e-01,
]
_ALPHA_TANH = [
    -2.76076847742355e-16,
    2.00018790482477e-13,
    -8.60467152213735e-11,
    5.12229709037114e-08,
    1.48572235717979e-05,
    6.37261928875436e-04,
    4.89352455891786e-03,
]
_BETA_TANH = [
    1.19825839466702e-06,
    1.18534705686654e-04,
    2.26843463243900e-03,
    4.89352518554385e-03,
]
_EXP = [float.fromhex(h) for h in ("0x1.694p-10", "0x1.125edcp-7", "0x1.555b5ap-5")]
_EXP += [float.fromhex(h) for h in ("0x1.55545p-3", "0x1.fffff6p-2", "0x1p0")]
_MAGIC = F32(12582912.0)  # 1.5 * 2^23: adding it rounds to an integer, half to even
_LOG2E, _LN2_HIGH, _LN2_LOW = F32(1.44269504088896341), F32(-6.93145752e-1), F32(-1.42860677e-6)
_ERF_SMALL = [-5.99104969e-4, 4.99339588e-3, -2.67667342e-2, 1.12818025e-1]
_ERF_SMALL += [-3.76124859e-1, 1.28379151e-1]
_ERF_BIG = [1.72948930e-5, -3.83208680e-4, 3.88393435e-3, -2.42545605e-2]
_ERF_BIG += [1.06777847e-1, 6.34846687e-1, 1.28717512e-1]
_ERF_EXP = [1.38319808e-3, 8.37550033e-3, 4.16689515e-2, 1.66664466e-1, 4.99999851e-1, 1.0, 1.0]


def logistic(x: Any) -> Array:
    """Sigmoid: f32 -> f32. A rational polynomial on [-18, 18], at least 0."""
    v = np.minimum(np.maximum(f32(x), F32(-18)), F32(18))
    square = v * v
    p = v * chain(square, _ALPHA_LOGISTIC)
    return np.maximum(p / chain(square, _BETA_LOGISTIC) + F32(0.5), F32(0))


def tanh(x: Any) -> Array:
    """Tanh: f32 -> f32. A rational polynomial on [-9, 9]."""
    v = np.minimum(np.maximum(f32(x), F32(-9)), F32(9))
    square = v * v
    return (v * chain(square, _ALPHA_TANH)) / chain(square, _BETA_TANH)


def _reduce(v: Array) -> tuple[Array, Array]:
    """v = m * ln 2 + r: f32 -> (r as f32, m as int64)."""
    m = fma(v, _LOG2E, _MAGIC) - _MAGIC
    return fma(m, _LN2_LOW, fma(m, _LN2_HIGH, v)), m.astype(np.int64)


def _power_of_two(m: Array) -> Array:
    """2^m for integers -127..128, as f32 (0 at -127, infinity at 128)."""
    return ((m + 127) << 23).astype(np.int32).view(np.float32)


def exp(x: Any) -> Array:
    """Exp: f32 -> f32, the scale split in two factors so that subnormal results exist."""
    v = np.minimum(np.maximum(f32(x), F32(-103.9720840454)), F32(88.7762626647950))
    r, m = _reduce(v)
    normal = np.clip(m, -126, 127)
    overflow = _power_of_two(m - normal)
    with np.errstate(over="ignore", under="ignore"):
        return fma(chain(r, _EXP), r * overflow, overflow) * _power_of_two(normal)


def _sum_exp(v: Array, lanes: int) -> tuple[Array, np.float32]:
    """exp of one row already reduced by its maximum: f32[D] -> (f32[D], their sum as f32).

    Running sums, one for each lane, take the elements in turn; they are added pairwise at the end.
    """
    r, m = _reduce(np.maximum(v, F32(-88.3762626647949)))
    e = chain(r, [*_EXP, 1.0]) * _power_of_two(m)
    sums = np.zeros(lanes, np.float32)
    for start in range(0, e.size, lanes):
        part = e[start : start + lanes]
        sums[: part.size] += part
    if lanes == 16:
        sums = sums[:8] + sums[8:]
    low, high = sums[:4], sums[4:]
    return e, ((high[0] + high[1]) + (high[2] + high[3])) + ((low[0] + low[1]) + (low[2] + low[3]))


def _rows(x: Any, axis: int) -> tuple[Array, tuple[int, ...]]:
    moved = np.moveaxis(f32(x), axis, -1)
    return np.ascontiguousarray(moved).reshape(-1, moved.shape[-1]), moved.shape


def softmax(x: Any, axis: int = -1, *, lanes: int = 8) -> Array:
    """Softmax (opset 13 meaning): f32 -> f32, exp times the reciprocal of the sum.

    The kernel adds in 16 lanes on CPUs with AVX-512, else in 8.
    """
    rows, shape = _rows(x, axis)
    out = np.empty_like(rows)
    for i, row in enumerate(rows):
        e, total = _sum_exp(row - row.max(), lanes)
        out[i] = e * (F32(1) / total)
    return np.moveaxis(out.reshape(shape), -1, axis)


def hard_sigmoid(x: Any, alpha: float = 0.2, beta: float = 0.5) -> Array:
    """HardSigmoid: f32 -> f32; the product and the sum are rounded separately."""
    return f32(np.clip(F32(alpha) * f32(x) + F32(beta), F32(0), F32(1)))


def leaky_relu(x: Any, alpha: float = 0.01) -> Array:
    """LeakyRelu: f32 -> f32."""
    v = f32(x)
    return np.where(v >= 0, v, F32(alpha) * v)


def erf(x: Any) -> Array:
    """Erf: f32 -> f32, two polynomials that meet at |x| = 0.921875."""
    value = f32(x)
    a = np.minimum(np.abs(value), F32(3.925))
    square = a * a
    small = fma(chain(square, _ERF_SMALL), a, a)
    t = -fma(chain(a, _ERF_BIG), a, a)
    m = fma(_LOG2E, t, _MAGIC) - _MAGIC
    r = fma(m, _LN2_LOW, fma(m, _LN2_HIGH, t))
    big = F32(1) - chain(r, _ERF_EXP) * _power_of_two(m.astype(np.int64))
    return np.copysign(np.where(a > F32(0.921875), big, small), value)
