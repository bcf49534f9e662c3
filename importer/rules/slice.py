"""Slice."""

from __future__ import annotations

from intonnx.importer.qdq.boundary import Boundary
from intonnx.importer.qdq.codes import OnCodes, whole
from intonnx.importer.registry import commutes
from intonnx.ir.graph import Refusal
from intonnx.ir.ops.slice import Slice
from intonnx.ir.types import QuantParams

from ._integers import integers

LARGEST = (2**31 - 1, 2**63 - 1)
SMALLEST = -(2**63)


@commutes("Slice")
def slice_on_codes(
    boundary: Boundary, params: QuantParams | None, exact: bool
) -> OnCodes | Refusal:
    """The bounds are attributes before opset 10, inputs from then on; by default of every axis."""
    found: list[tuple[int, ...] | None] = []
    for index, name in enumerate(("starts", "ends", "axes", "steps"), start=1):
        value = integers(boundary, index, name, f"{name} of the slice", since=10)
        if isinstance(value, Refusal):
            return value
        found.append(value)
    starts, ends = found[0] or (), found[1] or ()
    axes = tuple(range(len(starts))) if found[2] is None else found[2]
    steps = (1,) * len(starts) if found[3] is None else found[3]
    ends = tuple(_end(*pair) for pair in zip(ends, steps, strict=False))
    return whole(boundary, params, Slice(starts=starts, ends=ends, axes=axes, steps=steps))


def _end(end: int, step: int) -> int:
    """Backwards too the largest integers mean "to the end", as onnxruntime takes them.

    By the letter of Slice-13 nothing would be left; models say it to reverse an axis.
    """
    return SMALLEST if step < 0 and end in LARGEST else end
