"""What is said of two arrays beside their largest difference: SQNR, cosine, saturation."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from intonnx.ir.quantization import dequantize_array
from intonnx.ir.types import Array, TensorType


class Sums(NamedTuple):
    """Sums over elements, which add up over samples.

    Attributes:
        signal: the squares of the reference's real values.
        noise: the squares of the differences from them.
        ours: the squares of our real values.
        product: the products of both.
        saturated: how many of our codes are at an end of their range, but for codes of zero.
        elements: how many elements were counted.
    """

    signal: float = 0.0
    noise: float = 0.0
    ours: float = 0.0
    product: float = 0.0
    saturated: int = 0
    elements: int = 0

    def plus(self, other: Sums) -> Sums:
        """Both together."""
        return Sums(
            self.signal + other.signal,
            self.noise + other.noise,
            self.ours + other.ours,
            self.product + other.product,
            self.saturated + other.saturated,
            self.elements + other.elements,
        )

    @property
    def sqnr(self) -> float | None:
        """The signal to quantization noise ratio in dB; None without noise or signal."""
        if self.noise <= 0 or self.signal <= 0 or not math.isfinite(self.noise):
            return None
        return 10 * math.log10(self.signal / self.noise)

    @property
    def cosine(self) -> float | None:
        """The cosine of the angle between both as vectors; None where one of them is zero."""
        size = math.sqrt(self.signal) * math.sqrt(self.ours)
        return self.product / size if size > 0 and math.isfinite(size) else None


def sums_of(kind: TensorType, ours: Array, theirs: Array) -> Sums:
    """The sums over two arrays of this type: codes count as their real values.

    Values that are no numbers, or not finite, are left out.
    """
    if ours.shape != theirs.shape or ours.dtype.kind not in "biuf" or theirs.dtype.kind == "O":
        return Sums(elements=ours.size)
    return real_sums(real(kind, ours), real(kind, theirs))._replace(
        saturated=saturated(kind, ours), elements=ours.size
    )


def real_sums(ours: Array, theirs: Array) -> Sums:
    """The sums over real values."""
    a, b = ours.astype(np.float64).reshape(-1), theirs.astype(np.float64).reshape(-1)
    finite = np.isfinite(a) & np.isfinite(b)
    a, b = a[finite], b[finite]
    with np.errstate(over="ignore"):
        noise = float(np.square(a - b).sum())
        signal, own = float(np.square(b).sum()), float(np.square(a).sum())
        return Sums(signal, noise, own, float((a * b).sum()), elements=ours.size)


def real(kind: TensorType, values: Array) -> Array:
    """The real values of codes; of anything else the values themselves."""
    return values if kind.quant is None else dequantize_array(values, kind.quant)


def saturated(kind: TensorType, codes: Array) -> int:
    """How many codes are at an end of their range, where that is not zero itself.

    None of floats and of accumulators are. A relu leaves many at the end that stands for zero.
    """
    if kind.quant is None or kind.quant.storage.bits > 16 or kind.quant.block is not None:
        return 0
    params = kind.quant
    zero = params.along(codes.ndim)[1]
    ends = ((codes == end) & (zero != end) for end in (params.qmin, params.qmax))
    return sum(int(np.count_nonzero(end)) for end in ends)
