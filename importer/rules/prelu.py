"""PRelu."""

from __future__ import annotations

from intonnx.importer.qdq.boundary import Boundary
from intonnx.importer.registry import quantizes
from intonnx.ir.graph import Refusal
from intonnx.ir.ops.prelu import Prelu

from ._binary import quantize_literal


@quantizes("PRelu")
def quantize_prelu(boundary: Boundary) -> Refusal | None:
    """The data and its slope, which broadcasts to the data."""
    return quantize_literal(boundary, lambda out: Prelu(out=out))
