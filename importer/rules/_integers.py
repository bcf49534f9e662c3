"""Lists of whole numbers that were attributes and became inputs."""

from __future__ import annotations

from intonnx.importer.qdq.boundary import Boundary
from intonnx.ir.graph import Refusal
from intonnx.ir.ops.onnx_op import Opaque


def integers(
    boundary: Boundary, index: int, attribute: str, what: str, *, since: int
) -> tuple[int, ...] | Refusal | None:
    """The attribute before opset `since`, the input at `index` from then on; None when absent.

    Refuses, as "the `what`", an input that is computed at run time.
    """
    if boundary.op.version < since:
        given: tuple[int, ...] | Opaque | None = boundary.attribute(attribute)
        # An attribute without any number does not say that its items are numbers.
        return () if isinstance(given, Opaque) else given
    if not boundary.has(index):
        return None
    value = boundary.needs_constant(index, what)
    if isinstance(value, Refusal):
        return value
    return tuple(int(number) for number in value.reshape(-1))
