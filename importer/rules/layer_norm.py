"""LayerNormalization and RMSNormalization."""

from __future__ import annotations

from intonnx.importer.qdq.boundary import Boundary
from intonnx.importer.qdq.codes import is_used
from intonnx.importer.registry import quantizes
from intonnx.ir.graph import Refusal
from intonnx.ir.ops.layer_norm import LayerNorm, RmsNorm

from ._normalization import factors, statistics_refusal
from ._results import produced


@quantizes("LayerNormalization", "RMSNormalization")
def quantize_layer_norm(boundary: Boundary) -> Refusal | None:
    """Statistics of integer sums; the type that `stash_type` asks for them is exceeded."""
    x = boundary.needs_activation(0)
    if isinstance(x, Refusal):
        return x
    for index, name in enumerate(boundary.node.results[1:], start=1):
        if is_used(boundary, index):
            return statistics_refusal(boundary, name)
    centred = boundary.op.op_type == "LayerNormalization"
    names = factors(boundary, {1: "scale", 2: "bias"} if centred else {1: "scale"})
    if isinstance(names, Refusal):
        return names
    axis = boundary.attribute("axis", -1)
    epsilon = boundary.attribute("epsilon", 1e-5)
    kind = LayerNorm if centred else RmsNorm
    operands = [x.name, *names]
    return produced(boundary, lambda out: kind(axis=axis, epsilon=epsilon, out=out), operands)
