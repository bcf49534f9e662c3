"""Shapes with symbols: products, axes, and where an axis goes when a tensor is reshaped."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence

from .op import Op
from .types import UNKNOWN_DIM, Array, Dim, QuantParams, TensorType

_GENERATED = "unk__"
"""How the symbols begin that shape inference makes up for sizes it does not know."""


def product(sizes: Sequence[Dim]) -> Dim:
    """The product of sizes: a number, the one symbol when all else is 1, or an unknown size."""
    return quotient(sizes, 1) if 0 not in sizes else 0


def quotient(sizes: Sequence[Dim], divisor: int) -> Dim:
    """The product of sizes over a divisor: exact for numbers, else the one symbol or unknown.

    For numbers the divisor must divide their product.
    """
    symbols = [size for size in sizes if isinstance(size, str)]
    number = math.prod(size for size in sizes if isinstance(size, int))
    if not symbols:
        return number // divisor
    return symbols[0] if len(symbols) == 1 and number == divisor else UNKNOWN_DIM


def normalized_axes(op: Op, axes: Sequence[int], rank: int, constraint: str) -> tuple[int, ...]:
    """Axes from 0 on, each once. Raises TypeFailure for one out of range or given twice."""
    in_range = all(-rank <= axis < rank for axis in axes)
    op.require(in_range, constraint, f"axes {list(axes)} for rank {rank}")
    found = tuple(axis % rank for axis in axes)
    op.require(len(set(found)) == len(found), constraint, f"axes {list(axes)} name one twice")
    return found


def kept_axis(before: Sequence[Dim], after: Sequence[Dim], axis: int) -> int | None:
    """Where an axis is after a reshape that neither splits it nor joins it with another.

    None when it is not whole any more, or when symbols leave that open.
    """
    for candidate in sorted(range(len(after)), key=lambda i: abs(i - axis)):
        if before[axis] == after[candidate] and (
            _equal_products(before[:axis], after[:candidate])
            or _equal_products(before[axis + 1 :], after[candidate + 1 :])
        ):
            return candidate
    return None


def _equal_products(a: Sequence[Dim], b: Sequence[Dim]) -> bool:
    return UNKNOWN_DIM not in (*a, *b) and _factors(a) == _factors(b)


def _factors(sizes: Sequence[Dim]) -> tuple[int, Counter[str]]:
    number = math.prod(size for size in sizes if isinstance(size, int))
    return number, Counter(size for size in sizes if isinstance(size, str))


def with_parameters(
    x: TensorType, shape: Sequence[Dim] | None, params: QuantParams | None
) -> TensorType:
    """The elements of `x` in another shape, with parameters that fit that shape."""
    sizes = None if shape is None else tuple(shape)
    return TensorType(dtype=x.dtype, shape=sizes, quant=params, container=x.container)


def computed_sizes(op: Op, computed: TensorType, constraint: str) -> tuple[Dim, ...] | None:
    """As many unknown sizes as a shape computed at run time has; None when that is not known."""
    fits = computed.is_integer and computed.rank in (None, 1)
    op.require(fits, constraint, f"the operand is {computed.dtype} of rank {computed.rank}")
    length = None if computed.shape is None else computed.shape[0]
    return (UNKNOWN_DIM,) * length if isinstance(length, int) else None


def rearranged(
    params: QuantParams, move: Callable[[Array], Array], axis: int | None
) -> QuantParams:
    """The parameters along `axis` whose scales and zero points `move` made from those given."""
    arrays = {"scale": move(params.scale), "zero_point": move(params.zero_point)}
    return params.model_copy(update={**arrays, "axis": axis})


def _vaguer(own: Dim, other: Dim) -> bool:
    """Whether a size says less than another one of the same axis."""
    generated = isinstance(own, str) and own.startswith(_GENERATED)
    return own == UNKNOWN_DIM or (
        generated and not (isinstance(other, str) and other.startswith((_GENERATED, UNKNOWN_DIM)))
    )


def refined(inferred: TensorType, known: TensorType | None) -> TensorType:
    """The inferred type with unknown sizes filled in from what else is known of the value."""
    if known is None or known.shape is None or known.shape == inferred.shape:
        return inferred
    shape = known.shape
    if inferred.shape is not None:
        if len(inferred.shape) != len(shape):
            return inferred
        pairs = zip(inferred.shape, shape, strict=True)
        shape = tuple(other if _vaguer(own, other) else own for own, other in pairs)
        if shape == inferred.shape:
            return inferred
    try:
        return inferred.with_shape(shape)
    except ValueError:  # per-axis parameters show that what else is known is wrong
        return inferred
