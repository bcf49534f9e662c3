"""Reshape, Flatten, Squeeze and Unsqueeze."""

from __future__ import annotations

from intonnx.importer.qdq.boundary import Boundary
from intonnx.importer.qdq.codes import OnCodes, whole
from intonnx.importer.registry import commutes
from intonnx.ir.graph import Refusal
from intonnx.ir.ops.reshape import Flatten, Reshape, Squeeze, Unsqueeze
from intonnx.ir.types import QuantParams

from ._integers import integers


@commutes("Reshape")
def reshape_on_codes(
    boundary: Boundary, params: QuantParams | None, exact: bool
) -> OnCodes | Refusal:
    """The target may be computed at run time; `allowzero` came with opset 14."""
    allowzero = bool(boundary.attribute("allowzero", 0))
    shape = integers(boundary, 1, "shape", "target shape", since=5)
    if isinstance(shape, Refusal):
        op = Reshape(allowzero=allowzero)
        return whole(boundary, params, op, (boundary.name(1),))
    return whole(boundary, params, Reshape(shape=shape or (), allowzero=allowzero))


@commutes("Flatten")
def flatten_on_codes(
    boundary: Boundary, params: QuantParams | None, exact: bool
) -> OnCodes | Refusal:
    """The axes before `axis` are joined, and those from it on."""
    return whole(boundary, params, Flatten(axis=boundary.attribute("axis", 1)))


@commutes("Squeeze")
def squeeze_on_codes(
    boundary: Boundary, params: QuantParams | None, exact: bool
) -> OnCodes | Refusal:
    """The axes became an input with opset 13; without them every axis of size 1 goes."""
    axes = integers(boundary, 1, "axes", "axes", since=13)
    return axes if isinstance(axes, Refusal) else whole(boundary, params, Squeeze(axes=axes))


@commutes("Unsqueeze")
def unsqueeze_on_codes(
    boundary: Boundary, params: QuantParams | None, exact: bool
) -> OnCodes | Refusal:
    """The axes became an input with opset 13."""
    axes = integers(boundary, 1, "axes", "axes", since=13)
    return (
        axes if isinstance(axes, Refusal) else whole(boundary, params, Unsqueeze(axes=axes or ()))
    )
