"""Shapes of operands that broadcast as numpy's do."""

from __future__ import annotations

from collections.abc import Sequence

from .op import Op
from .types import UNKNOWN_DIM, Dim


def broadcast_shape(
    op: Op, shapes: Sequence[Sequence[Dim] | None], constraint: str
) -> tuple[Dim, ...] | None:
    """The shape that operands of these shapes broadcast to; None when a rank is not known.

    A symbol beside 1 or beside itself stays, beside a larger number it gives way to that number,
    and two symbols that may differ give an unknown size.
    Raises TypeFailure with the constraint's number when two sizes cannot meet.
    Source: ONNX docs/Broadcasting.md.
    """
    known = [tuple(shape) for shape in shapes if shape is not None]
    if len(known) < len(shapes):
        return None
    rank = max((len(shape) for shape in known), default=0)
    padded = [(1,) * (rank - len(shape)) + shape for shape in known]
    return tuple(_meet(op, sizes, shapes, constraint) for sizes in zip(*padded, strict=True))


def _meet(
    op: Op, sizes: Sequence[Dim], shapes: Sequence[Sequence[Dim] | None], constraint: str
) -> Dim:
    distinct = [size for size in dict.fromkeys(sizes) if size != 1]
    numbers = [size for size in distinct if isinstance(size, int)]
    listed = ", ".join(str(shape) for shape in shapes)
    op.require(len(numbers) <= 1, constraint, f"the shapes {listed} do not broadcast")
    if numbers:
        return numbers[0]
    if len(distinct) > 1:
        return UNKNOWN_DIM
    return distinct[0] if distinct else 1


def broadcasts_to(shape: Sequence[Dim] | None, target: Sequence[Dim] | None) -> bool:
    """Whether a tensor of this shape broadcasts to the target's shape, as far as they are known."""
    if shape is None or target is None:
        return True
    return len(shape) <= len(target) and all(
        size == 1 or size == whole or isinstance(size, str) or isinstance(whole, str)
        for size, whole in zip(reversed(shape), reversed(target), strict=False)
    )
