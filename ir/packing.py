"""Codes of 2, 4 or 8 bits in bytes, as operators of com.microsoft hold them."""

from __future__ import annotations

import numpy as np

from .types import Array


def packed(codes: Array, bits: int) -> Array:
    """Unsigned codes [..., n] as u8 [..., ceil(n * bits / 8)], the first in the lowest bits."""
    each = 8 // bits
    padded = np.zeros((*codes.shape[:-1], -(-codes.shape[-1] // each) * each), np.uint8)
    padded[..., : codes.shape[-1]] = codes
    parts = padded.reshape(*codes.shape[:-1], -1, each)
    shifted = parts << np.arange(0, 8, bits, dtype=np.uint8)
    joined: Array = np.bitwise_or.reduce(shifted, axis=-1).astype(np.uint8)
    return joined


def unpacked(array: Array, bits: int) -> Array:
    """The codes in u8 [..., n], as u8 [..., n * 8 / bits]; the first is in the lowest bits."""
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    codes = (array.astype(np.uint8)[..., None] >> shifts) & np.uint8((1 << bits) - 1)
    return codes.reshape(*array.shape[:-1], array.shape[-1] * len(shifts))
