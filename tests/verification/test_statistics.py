"""SQNR, cosine and saturation against plain formulas."""

from __future__ import annotations

import math

import numpy as np
import pytest

from intonnx.ir.types import DType, QuantParams, TensorType, plain, quantized
from intonnx.verification.statistics import Sums, saturated, sums_of

RNG = np.random.default_rng(0)


def kind(zero: int, scale: float = 0.5) -> TensorType:
    params = QuantParams(storage=DType.U8, scale=np.float32(scale), zero_point=np.int64(zero))
    return quantized(params, (4, 5))


def test_codes_count_as_their_real_values() -> None:
    ours, theirs = (RNG.integers(0, 256, (4, 5)).astype(np.uint8) for _ in range(2))
    sums = sums_of(kind(100), ours, theirs)
    a = [(int(code) - 100) * 0.5 for code in ours.reshape(-1)]
    b = [(int(code) - 100) * 0.5 for code in theirs.reshape(-1)]
    noise = sum((x - y) ** 2 for x, y in zip(a, b, strict=True))
    assert sums.sqnr == pytest.approx(10 * math.log10(sum(y * y for y in b) / noise))
    cosine = sum(x * y for x, y in zip(a, b, strict=True)) / math.dist(a, [0] * 20)
    assert sums.cosine == pytest.approx(cosine / math.dist(b, [0] * 20))


def test_samples_add_up() -> None:
    arrays = [RNG.normal(0, 1, (2, 6)).astype(np.float32) for _ in range(4)]
    real = plain(DType.F32, (2, 6))
    apart = sums_of(real, arrays[0], arrays[1]).plus(sums_of(real, arrays[2], arrays[3]))
    whole = sums_of(real, np.stack(arrays[::2]), np.stack(arrays[1::2]))
    assert apart.sqnr == pytest.approx(whole.sqnr)
    assert apart.elements == whole.elements == 24


def test_equal_values_have_no_ratio_and_zeros_no_angle() -> None:
    codes = np.full((4, 5), 100, np.uint8)
    sums = sums_of(kind(100), codes, codes)
    assert (sums.sqnr, sums.cosine) == (None, None)
    assert Sums().sqnr is None


def test_what_is_not_finite_is_left_out() -> None:
    ours = np.array([1, np.nan, np.inf, 2], np.float32)
    theirs = np.array([1, 5, 5, 3], np.float32)
    sums = sums_of(plain(DType.F32, (4,)), ours, theirs)
    assert sums.noise == 1
    assert sums.signal == 10


def test_codes_at_an_end_are_saturated_unless_they_stand_for_zero() -> None:
    codes = np.array([0, 0, 255, 3], np.uint8)
    assert saturated(kind(0), codes) == 1
    assert saturated(kind(255), codes) == 2
    assert saturated(kind(7), codes) == 3
    assert saturated(plain(DType.F32, (4,)), codes.astype(np.float32)) == 0
