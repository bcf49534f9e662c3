"""LRN."""

from __future__ import annotations

from intonnx.importer.qdq.boundary import Boundary
from intonnx.importer.registry import quantizes
from intonnx.ir.graph import Refusal
from intonnx.ir.ops.lrn import LocalResponseNorm

from ._results import produced


@quantizes("LRN")
def quantize_lrn(boundary: Boundary) -> Refusal | None:
    """Squares of neighbouring channels are added as integers."""
    x = boundary.needs_activation(0)
    if isinstance(x, Refusal):
        return x
    fields = {
        "size": boundary.attribute("size"),
        "alpha": boundary.attribute("alpha", 1e-4),
        "beta": boundary.attribute("beta", 0.75),
        "bias": boundary.attribute("bias", 1.0),
    }
    return produced(boundary, lambda out: LocalResponseNorm(**fields, out=out), [x.name])
