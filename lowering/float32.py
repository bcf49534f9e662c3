"""Steps of float32 arithmetic that numpy does not have."""

from __future__ import annotations

import numpy as np

from intonnx.ir.types import Array


def fused_multiply_add(a: Array, b: Array, c: Array) -> Array:
    """Compute a * b + c rounded to float32 once, as the FMA instructions of a CPU do.

    The operands are float32 arrays that broadcast. The product has 48 bits, so float64 holds it
    exactly. Their sum is rounded to odd in float64: truncated, with the last bit set when anything
    was cut off. Because 53 >= 24 + 2 bits are kept, rounding that to float32 gives the exact sum's
    rounding. Source: IEEE 754-2019, 5.4.1 fusedMultiplyAdd; Boldo and Melquiond, "Emulation of FMA
    and correctly rounded sums: proved algorithms using rounding to odd" (2008).
    """
    with np.errstate(over="ignore", invalid="ignore"):
        product = a.astype(np.float64) * b.astype(np.float64)
        addend = c.astype(np.float64)
        total = np.asarray(product + addend)
        # What the rounding of the sum lost, exactly (Knuth's TwoSum).
        seen = total - product
        lost = np.asarray((product - (total - seen)) + (addend - seen))
        bits = total.view(np.int64)
        inexact = (lost > 0) | (lost < 0)  # not for NaN, which infinities leave
        # An odd last bit is right already. An even one is where the sum was rounded to: the odd
        # neighbour on the side of the exact sum has a magnitude one step larger or smaller.
        step = np.where((lost > 0) == (total > 0), 1, -1)
        odd = np.where(inexact & (bits & 1 == 0), bits + step, bits).view(np.float64)
        rounded: Array = odd.astype(np.float32)
    return rounded
