"""Normalizations written down plainly in float64, and what their tests share."""

from __future__ import annotations

from typing import Any

import numpy as np

from support.float32 import limits
from support.models import Array, Params

FULL_RANGE = [
    (Params(np.uint8, 0.02, 114), Params(np.uint8, 0.03, 128)),
    (Params(np.int8, 0.3, -128), Params(np.int8, 0.02, 0)),
    (Params(np.uint8, 0.05, 255), Params(np.int8, 0.03, 5)),
    (Params(np.uint16, 2e-4, 30000), Params(np.uint16, 1e-4, 32768)),
    (Params(np.int16, 3e-4, 9), Params(np.uint8, 0.03, 128)),
]
"""Parameters of operand and result."""


def normalized(x: Array, axes: tuple[int, ...], epsilon: float, *, mean: bool = True) -> Array:
    """(x - mean) / sqrt(variance + epsilon), in two passes."""
    centre = x.mean(axes, keepdims=True) if mean else 0.0
    spread = np.square(x - centre).mean(axes, keepdims=True)
    return np.asarray((x - centre) / np.sqrt(spread + epsilon))


def real(codes: Array, params: Params) -> Array:
    """float64 values of codes."""
    zero = params.zero_array.astype(np.float64)
    return np.asarray((codes.astype(np.float64) - zero) * params.scale_array.astype(np.float64))


def codes_of(x: Array, params: Params) -> Array:
    """Codes of float64 values."""
    low, high = limits(params.dtype)
    shifted = np.rint(x / params.scale_array.astype(np.float64)) + params.zero_array
    return np.clip(shifted, low, high).astype(params.dtype)


def factors(*shape: int, seed: int = 3) -> tuple[Array, Array]:
    """A scale around 1 and a bias around 0."""
    rng = np.random.default_rng(seed)
    scale, bias = 1 + rng.standard_normal(shape) / 4, rng.standard_normal(shape) / 2
    return scale.astype(np.float32), bias.astype(np.float32)


def nearly_constant(dtype: Any, shape: tuple[int, ...], last: int = 1) -> Array:
    """Codes at the top of the range, the first element of each last axis one below."""
    top = np.iinfo(dtype).max
    codes = np.full(shape, top, dtype)
    codes[..., :last] = top - 1
    return codes
