"""Hypothesis strategies: quantization parameters that make ties likely, codes, operator cases.

Every case is a small frozen record, so that a failing example prints as something to paste.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import hypothesis.strategies as st
import numpy as np
import numpy.typing as npt
from hypothesis.extra import numpy as hnp

from support.float32 import F32, Array, limits
from support.models import Params

STORAGES: tuple[type[np.integer[Any]], ...] = (np.uint8, np.int8, np.uint16, np.int16)
EIGHT_BIT: tuple[type[np.integer[Any]], ...] = (np.uint8, np.int8)


def storages(*, wide: bool = False) -> st.SearchStrategy[type[np.integer[Any]]]:
    """u8 and s8; with `wide` also u16 and s16."""
    return st.sampled_from(STORAGES if wide else EIGHT_BIT)


def zero_points(dtype: npt.DTypeLike) -> st.SearchStrategy[int]:
    """Zero points at both ends, in the middle, next to these, and anywhere."""
    low, high = limits(dtype)
    middle = (low + high + 1) // 2
    telling = [middle, low, high, middle - 1, low + 1, high - 1]
    return st.sampled_from(telling) | st.integers(low, high)


def scales(low: float = 1e-3, high: float = 1e3) -> st.SearchStrategy[float]:
    """Positive scales: decimals, powers of two, thirds, neighbours of .5, and anything between."""
    telling = [0.02, 0.5, 1.0, 0.25, 0.1, 1 / 3, 1 / 256, 1 / 255, 2.0, 0.0078125, 0.0235285, 8.0]
    telling += [float(np.nextafter(F32(0.5), F32(0))), float(np.nextafter(F32(0.5), F32(1)))]
    kept = [float(F32(v)) for v in telling if low <= v <= high]
    between = st.floats(np.log(low), np.log(high)).map(lambda v: float(F32(np.exp(v))))
    return st.sampled_from(kept) | between


@st.composite
def scale_ratios(draw: st.DrawFn, count: int, low: float = 1e-3, high: float = 1e3) -> list[float]:
    """`count` scales that are small multiples of one unit (equal ones, halves, thirds: ties)."""
    if draw(st.booleans()):
        return [draw(scales(low, high)) for _ in range(count)]
    unit = draw(scales(max(low, 1e-2), min(high, 10.0)))
    factors = st.sampled_from([1.0, 1.0, 2.0, 0.5, 3.0, 4.0, 0.25, 1.5, 6.0, 10.0])
    return [float(F32(unit * draw(factors))) for _ in range(count)]


@st.composite
def params(draw: st.DrawFn, dtype: npt.DTypeLike | None = None, *, wide: bool = False) -> Params:
    """Per-tensor parameters."""
    storage = draw(storages(wide=wide)) if dtype is None else dtype
    return Params(storage, draw(scales()), draw(zero_points(storage)))


@st.composite
def axis_params(
    draw: st.DrawFn, length: int, axis: int, dtype: npt.DTypeLike = np.int8,
    *, symmetric: bool = True,
) -> Params:  # fmt: skip
    """Per-axis parameters; with `symmetric` the zero point is the middle of s8 or 128 of u8."""
    low, high = limits(dtype)
    zero = [(low + high + 1) // 2] * length
    if not symmetric:
        zero = draw(st.lists(zero_points(dtype), min_size=length, max_size=length))
    scale = draw(st.lists(scales(1e-3, 1.0), min_size=length, max_size=length))
    return Params(dtype, np.array(scale, np.float32), np.array(zero), axis)


def codes(dtype: npt.DTypeLike, shape: tuple[int, ...]) -> st.SearchStrategy[Array]:
    """Code arrays: extremes only, random from a seed, or element by element (for shrinking)."""
    low, high = limits(dtype)
    storage = np.dtype(dtype)

    def ends(seed: int) -> Array:
        return np.random.default_rng(seed).choice(np.array([low, high]), shape).astype(storage)

    def anything(seed: int) -> Array:
        return np.random.default_rng(seed).integers(low, high + 1, shape).astype(storage)

    seeds = st.integers(0, 2**16)
    options = [
        seeds.map(anything),
        seeds.map(ends),
        st.sampled_from([low, high]).map(lambda v: np.full(shape, v, storage)),
    ]
    if int(np.prod(shape)) <= 64:
        options.append(hnp.arrays(storage, shape, elements=st.integers(low, high)))
    return st.one_of(options)


def floats(shape: tuple[int, ...], spread: float = 4.0) -> st.SearchStrategy[Array]:
    """Float inputs: normal ones and multiples of 1/8 (ties after a division by round scales)."""

    def normal(seed: int) -> Array:
        return (np.random.default_rng(seed).standard_normal(shape) * spread).astype(np.float32)

    seeds = st.integers(0, 2**16)
    return seeds.map(normal) | seeds.map(lambda s: np.asarray(np.round(normal(s) * 8) / F32(8)))


@dataclass(frozen=True)
class ConvCase:
    """x [N, C, *D] codes, w [O, C/group, *K] codes, bias s32 [O] or None."""

    x: Array
    w: Array
    bias: Array | None
    x_params: Params
    w_params: Params
    out: Params
    group: int
    strides: list[int]
    dilations: list[int]
    pads: list[int]

    @property
    def geometry(self) -> dict[str, Any]:
        """The node's attributes."""
        return {
            "strides": self.strides,
            "dilations": self.dilations,
            "pads": self.pads,
            "group": self.group,
        }


@st.composite
def conv_cases(
    draw: st.DrawFn,
    *,
    rank: int | None = None,
    dtype: npt.DTypeLike | None = None,
    weight_dtype: npt.DTypeLike | None = None,
) -> ConvCase:
    """Convolutions of rank 1 to 3: grouped, depthwise, strided, dilated, unevenly padded."""
    rank = draw(st.integers(1, 3)) if rank is None else rank
    group, per_in, per_out = draw(
        st.sampled_from(
            [(1, 3, 4), (1, 1, 2), (2, 2, 1), (2, 1, 3), (4, 1, 1), (3, 1, 2), (1, 5, 1)]
        )
    )
    kernel = [draw(st.integers(1, 3)) for _ in range(rank)]
    dilations = [draw(st.integers(1, 2)) if k > 1 else 1 for k in kernel]
    reach = [d * (k - 1) + 1 for k, d in zip(kernel, dilations, strict=True)]
    pads = [draw(st.integers(0, r - 1)) for r in reach * 2]
    size = [max(r, draw(st.integers(2, 6 if rank < 3 else 4))) for r in reach]
    strides = [draw(st.integers(1, 2)) for _ in range(rank)]
    outs = group * per_out
    x_type = draw(storages()) if dtype is None else dtype
    w_type = draw(storages()) if weight_dtype is None else weight_dtype
    bias = np.random.default_rng(draw(st.integers(0, 99))).integers(-9999, 9999, outs)
    w_params = (
        draw(axis_params(outs, 0, w_type))
        if draw(st.booleans())
        else Params(w_type, draw(scales(1e-3, 1.0)), draw(zero_points(w_type)))
    )
    return ConvCase(
        draw(codes(x_type, (draw(st.integers(1, 2)), group * per_in, *size))),
        draw(codes(w_type, (outs, per_in, *kernel))),
        bias.astype(np.int32) if draw(st.booleans()) else None,
        draw(params(x_type)),
        w_params,
        Params(x_type, draw(scales(1e-2, 1e3)), draw(zero_points(x_type))),
        group,
        strides,
        dilations,
        pads,
    )


@dataclass(frozen=True)
class MatmulCase:
    """a [..., M, K] codes, b [..., K, N] codes; b per column when its axis is set."""

    a: Array
    b: Array
    a_params: Params
    b_params: Params
    out: Params


@st.composite
def matmul_cases(
    draw: st.DrawFn,
    *,
    dtype: npt.DTypeLike | None = None,
    weight_dtype: npt.DTypeLike | None = None,
    batched: bool = True,
) -> MatmulCase:
    """Matrix products, also batched and of one row or column, K from 1 to 40."""
    a_type = draw(storages()) if dtype is None else dtype
    b_type = draw(storages()) if weight_dtype is None else weight_dtype
    m, n, k = draw(st.integers(1, 5)), draw(st.integers(1, 9)), draw(st.integers(1, 40))
    batches: list[tuple[tuple[int, ...], tuple[int, ...]]] = [((), ())]
    if batched:
        batches += [((2,), ()), ((2,), (2,)), ((2, 1), (3,))]
    lead_a, lead_b = draw(st.sampled_from(batches))
    per_column = not lead_b and draw(st.booleans())
    b_params = (
        draw(axis_params(n, 1, b_type, symmetric=draw(st.booleans())))
        if per_column
        else draw(params(b_type))
    )
    return MatmulCase(
        draw(codes(a_type, (*lead_a, m, k))),
        draw(codes(b_type, (*lead_b, k, n))),
        draw(params(a_type)),
        b_params,
        Params(a_type, draw(scales(1e-2, 1e3)), draw(zero_points(a_type))),
    )


@dataclass(frozen=True)
class BinaryCase:
    """Two code arrays that broadcast, of one storage type unless mixed."""

    a: Array
    b: Array
    a_params: Params
    b_params: Params
    out: Params


_BROADCASTS: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((33,), (33,)),
    ((2, 3, 4, 5), (2, 3, 4, 5)),
    ((2, 3, 4, 5), (3, 1, 1)),
    ((1, 3, 1, 1), (2, 3, 4, 5)),
    ((4, 5), (5,)),
    ((5,), (4, 5)),
    ((4, 1), (1, 5)),
    ((), (7,)),
    ((7,), ()),
    ((), ()),
    ((1,), (1, 1)),
    ((2, 4, 3, 1), (2, 1, 3, 1)),
]


@st.composite
def binary_cases(
    draw: st.DrawFn, *, dtype: npt.DTypeLike | None = None, mixed: bool = False
) -> BinaryCase:
    """Element-wise operands with scales in simple ratios; `mixed`: any 8 or 16-bit types."""
    storage = draw(storages()) if dtype is None else dtype
    kinds = [draw(storages(wide=True)) for _ in range(3)] if mixed else [storage] * 3
    shape_a, shape_b = draw(st.sampled_from(_BROADCASTS))
    ratios = draw(scale_ratios(3, 1e-2, 10.0))
    sides = [
        Params(kind, s, draw(zero_points(kind))) for kind, s in zip(kinds, ratios, strict=True)
    ]
    return BinaryCase(draw(codes(kinds[0], shape_a)), draw(codes(kinds[1], shape_b)), *sides)


@dataclass(frozen=True)
class PoolCase:
    """x [N, C, *D] codes and the window."""

    x: Array
    x_params: Params
    out: Params
    kernel: list[int]
    strides: list[int]
    pads: list[int]
    ceil_mode: bool
    count_include_pad: bool

    @property
    def window(self) -> dict[str, Any]:
        """The options that every pool shares, besides the kernel."""
        return {"strides": self.strides, "pads": self.pads, "ceil_mode": self.ceil_mode}


@st.composite
def pool_cases(
    draw: st.DrawFn, *, rank: int | None = None, dtype: npt.DTypeLike | None = None
) -> PoolCase:
    """Pools of rank 1 to 3 with pads smaller than the kernel."""
    rank = draw(st.integers(1, 3)) if rank is None else rank
    storage = draw(storages()) if dtype is None else dtype
    kernel = [draw(st.integers(1, 3)) for _ in range(rank)]
    size = [draw(st.integers(k, 6)) for k in kernel]
    first, second = draw(scale_ratios(2, 1e-2, 10.0))
    return PoolCase(
        draw(codes(storage, (draw(st.integers(1, 2)), 3, *size))),
        Params(storage, first, draw(zero_points(storage))),
        Params(storage, second, draw(zero_points(storage))),
        kernel,
        [draw(st.integers(1, 3)) for _ in range(rank)],
        [draw(st.integers(0, k - 1)) for k in kernel * 2],
        draw(st.booleans()),
        draw(st.booleans()),
    )


@dataclass(frozen=True)
class MoverCase:
    """A data movement: op type, attributes, constant inputs after the first, input codes."""

    op_type: str
    x: Array
    attrs: dict[str, Any] = field(default_factory=dict[str, Any])
    constants: tuple[Array, ...] = ()
    results: int = 1


_X = (2, 3, 4, 6)


def _ints(*values: int) -> Array:
    return np.array(values, np.int64)


_MOVERS: list[tuple[str, dict[str, Any], tuple[Array, ...], int]] = [
    ("Transpose", {"perm": [0, 2, 3, 1]}, (), 1),
    ("Transpose", {}, (), 1),
    ("Reshape", {}, (_ints(0, -1, 8),), 1),
    ("Flatten", {"axis": 2}, (), 1),
    ("Unsqueeze", {}, (_ints(0, -1),), 1),
    ("Expand", {}, (_ints(3, 1, 1, 1, 1),), 1),
    ("Tile", {}, (_ints(1, 2, 1, 2),), 1),
    ("Slice", {}, (_ints(1, -1), _ints(4, -9), _ints(2, 3), _ints(2, -2)), 1),
    ("Gather", {"axis": 1}, (_ints(2, 0, -1),), 1),
    ("Split", {"axis": -1}, (_ints(1, 2, 3),), 3),
    ("DepthToSpace", {"blocksize": 1, "mode": "CRD"}, (), 1),
    ("SpaceToDepth", {"blocksize": 2}, (), 1),
    ("Identity", {}, (), 1),
]


@st.composite
def mover_cases(draw: st.DrawFn, *, dtype: npt.DTypeLike | None = None) -> MoverCase:
    """Operators that only move codes, on x [2, 3, 4, 6]."""
    op_type, attrs, constants, results = draw(st.sampled_from(_MOVERS))
    storage = draw(storages(wide=True)) if dtype is None else dtype
    return MoverCase(op_type, draw(codes(storage, _X)), attrs, constants, results)
