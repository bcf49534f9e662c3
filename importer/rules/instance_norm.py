"""InstanceNormalization and GroupNormalization."""

from __future__ import annotations

from intonnx.importer.qdq.boundary import Boundary
from intonnx.importer.registry import quantizes
from intonnx.ir.graph import Refusal
from intonnx.ir.ops.instance_norm import GroupNorm, InstanceNorm

from ._normalization import factors
from ._results import produced

_FACTORS = {1: "scale", 2: "bias"}


@quantizes("InstanceNormalization")
def quantize_instance_norm(boundary: Boundary) -> Refusal | None:
    """Statistics of integer sums over each channel."""
    x, names = boundary.needs_activation(0), factors(boundary, _FACTORS)
    if isinstance(x, Refusal):
        return x
    if isinstance(names, Refusal):
        return names
    epsilon = boundary.attribute("epsilon", 1e-5)
    return produced(boundary, lambda out: InstanceNorm(epsilon=epsilon, out=out), [x.name, *names])


@quantizes("GroupNormalization")
def quantize_group_norm(boundary: Boundary) -> Refusal | None:
    """Statistics of integer sums over each group of channels.

    Opset 21 replaced the operator of opset 18, which had a scale for each group and is deprecated.
    """
    x, groups = boundary.needs_activation(0), int(boundary.attribute("num_groups"))
    if isinstance(x, Refusal):
        return x
    names = factors(boundary, _FACTORS)
    if isinstance(names, Refusal):
        return names
    epsilon = boundary.attribute("epsilon", 1e-5)
    return produced(
        boundary,
        lambda out: GroupNorm(groups=groups, epsilon=epsilon, out=out),
        [x.name, *names],
    )
