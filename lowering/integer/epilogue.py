"""What happens to a block of sums while it is in the cache: requantize, clip, look up, dequantize.

Every numerics goes through one interface, `Epilogue`: the operators that follow an accumulating one
are applied by their own kernels to a block of rows, unless they are a requantization with one
float32 multiplier a channel, which works in place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from intonnx.ir.ops.clip import Clip
from intonnx.ir.ops.quantize import Requantize
from intonnx.ir.types import Array, QuantParams, TensorType
from intonnx.lowering.requantize import multiplier

from .kernel import Context, Follower, kernels

_TILE = 1024
"""Rows of few channels are handled several at a time, as rows of about this many elements."""


class Epilogue(Protocol):
    """From sums to results.

    Attributes:
        rounded: whether sums may be rounded to float32, once, before they are given.
    """

    rounded: bool

    def dtype(self, sums: np.dtype[Any]) -> np.dtype[Any]:
        """The type of the results, where `sums` is the integer type that holds every sum."""
        ...

    def apply(self, block: Array, out: Array, sums: np.dtype[Any]) -> None:
        """Write the results of a contiguous block [rows, channels] of whole numbers to `out`.

        The block is given up.
        """
        ...


def epilogue(context: Context, axis: int) -> Epilogue:
    """What follows a kernel whose result has its channels at `axis`."""
    followers = context.followers
    if not followers:
        return _Sums()
    first = followers[0]
    kind = first.context.operand(0)
    if isinstance(first.op, Requantize) and context.numerics == "qlinear":
        rank = kind.rank or 0
        factors = multiplier(kind.params, first.op.out, rank)
        narrow = kind.params.storage.bits > 16 >= first.op.out.storage.bits
        if factors is not None and narrow and not np.any(kind.params.zero_point):
            return _Codes(factors, first.op.out, followers[1:], axis)
    return _Chain(followers, axis)


class _Sums:
    """The sums themselves."""

    rounded = False

    def dtype(self, sums: np.dtype[Any]) -> np.dtype[Any]:
        return sums

    def apply(self, block: Array, out: Array, sums: np.dtype[Any]) -> None:
        np.copyto(out, block, casting="unsafe")


class _Chain:
    """The kernels of the followers, on a view of the block in the rank of the tensor."""

    rounded = False

    def __init__(self, followers: Sequence[Follower], axis: int) -> None:
        self._apply = _applied(followers, axis)
        self._dtype = followers[-1].context.results[0].dtype.numpy

    def dtype(self, sums: np.dtype[Any]) -> np.dtype[Any]:
        return self._dtype

    def apply(self, block: Array, out: Array, sums: np.dtype[Any]) -> None:
        np.copyto(out, self._apply(block.astype(sums, copy=False)), casting="unsafe")


class _Codes:
    """f32(sum) * multiplier, limited, rounded half to even, plus the zero point: `qlinear`.

    The arithmetic is that of `requantize.round_to_codes`; products of finite numbers are never
    NaN, and limiting after rounding to whole numbers or before it gives the same, as the limits
    are whole. A Clip of the codes narrows the limits.
    """

    rounded = True

    def __init__(
        self, factors: Array, out: QuantParams, followers: Sequence[Follower], axis: int
    ) -> None:
        low, high = out.qmin, out.qmax
        rest = list(followers)
        while rest and isinstance(rest[0].op, Clip):
            clip = rest.pop(0).op
            assert isinstance(clip, Clip)
            low, high = (min(max(end, clip.low), clip.high) for end in (low, high))
        zero = out.zero_point.reshape(-1)
        self._factors = factors.reshape(-1)
        self._low, self._high = (np.float32(end) - zero.astype(np.float32) for end in (low, high))
        self._zero = zero.astype(np.float32)
        self._storage = out.storage.numpy
        self._rest = _applied(rest, axis) if rest else None
        self._dtype = rest[-1].context.results[0].dtype.numpy if rest else self._storage
        channels = max(self._factors.size, zero.size)
        self._period = channels * max(1, _TILE // channels) if channels > 1 else 1
        self._tiled = [
            np.resize(part, self._period) if part.size > 1 else part.reshape(())[()]
            for part in (self._factors, self._low, self._high, self._zero)
        ]

    def dtype(self, sums: np.dtype[Any]) -> np.dtype[Any]:
        return self._dtype

    def apply(self, block: Array, out: Array, sums: np.dtype[Any]) -> None:
        v = block.astype(np.float32, copy=False)
        if v.size % self._period == 0:
            self._scale(v.reshape(-1, self._period), *self._tiled)
        else:
            self._scale(v, self._factors, self._low, self._high, self._zero)
        if self._rest is not None:
            v = self._rest(v.astype(self._storage))
        np.copyto(out, v, casting="unsafe")

    @staticmethod
    def _scale(v: Array, factors: Any, low: Any, high: Any, zero: Any) -> None:
        np.multiply(v, factors, out=v)
        v.clip(low, high, out=v)
        np.rint(v, out=v)
        if np.any(zero):
            np.add(v, zero, out=v)


def _applied(followers: Sequence[Follower], axis: int) -> Callable[[Array], Array]:
    """The kernels in turn, from a block [rows, channels] to one of results."""
    chain = [(kernels.follower(follower), follower.context) for follower in followers]
    kind: TensorType = followers[0].context.operand(0)
    rank = kind.rank or 1
    axis %= rank

    def run(block: Array) -> Array:
        x = _spread(block, rank, axis)
        for kernel, context in chain:
            (x,) = kernel([x, *context.constants[1:]])
        return _gathered(x, axis)

    return run


def _spread(block: Array, rank: int, axis: int) -> Array:
    """A view of [rows, channels] of this rank with the channels at `axis`, the rows beside it."""
    if rank == 1:
        return block.reshape(-1)
    other = axis - 1 if axis == rank - 1 else axis + 1
    view = block if axis > other else block.T
    shape = [1] * rank
    shape[axis], shape[other] = block.shape[1], block.shape[0]
    return view.reshape(shape)


def _gathered(x: Array, axis: int) -> Array:
    """The inverse of `_spread`."""
    if x.ndim == 1:
        return x[None]
    other = axis - 1 if axis == x.ndim - 1 else axis + 1
    kept = tuple(slice(None) if a in (axis, other) else 0 for a in range(x.ndim))
    return x[kept] if axis > other else x[kept].T
