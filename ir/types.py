"""Types of values: quantization parameters and tensor types; `dtypes` has the element types."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, PlainSerializer

from .dtypes import Array as Array
from .dtypes import DType as DType
from .dtypes import dtype_of as dtype_of

Dim = int | str
UNKNOWN_DIM = "?"


class Record(BaseModel):
    """A frozen, validated record: the base of everything in the IR that is data."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)


def _frozen(scalar: type) -> Any:
    dtype: np.dtype[Any] = np.dtype(scalar)

    def convert(value: object) -> Array:
        # The order "C" also makes a rank-0 result, which `ascontiguousarray` would not.
        array: Array = np.array(value, dtype=dtype, order="C")
        array.setflags(write=False)
        return array

    return convert


FloatArray = Annotated[
    Array, BeforeValidator(_frozen(np.float32)), PlainSerializer(np.ndarray.tolist)
]
IntArray = Annotated[Array, BeforeValidator(_frozen(np.int64)), PlainSerializer(np.ndarray.tolist)]


class QuantParams(Record):
    """Affine quantization: real value = (code - zero_point) * scale.

    Source: ONNX DequantizeLinear-21 (docs/Operators.md); MLIR `!quant.uniform`.

    Attributes:
        storage: the integer type of the codes.
        scale: float32; rank 0 per tensor, rank 1 per axis, the tensor's rank when blocked.
        zero_point: whole numbers with the shape of `scale`.
        axis: the axis that per-axis scales run along, or the blocked axis; None per tensor.
        block: the number of elements along `axis` that share a scale; None unless blocked.
        expressed: the float type of the real values.
        low, high: a storage range narrower than that of `storage`, or None.

    Raises ValueError (through pydantic) when a scale is not finite and positive, when the shapes
    differ, or when a zero point or the narrower range is out of the storage range.
    """

    storage: DType
    scale: FloatArray
    zero_point: IntArray
    axis: int | None = None
    block: int | None = None
    expressed: DType = DType.F32
    low: int | None = None
    high: int | None = None

    def model_post_init(self, context: Any, /) -> None:
        """Validate once; pydantic would call a validator for every record that holds these."""
        if not self.storage.is_integer:
            raise ValueError(f"the storage type {self.storage} is not an integer type")
        self._check_scales()
        if not self.expressed.is_float:
            raise ValueError(f"the expressed type {self.expressed} is not a float type")
        if not self.storage.low <= self.qmin <= self.qmax <= self.storage.high:
            raise ValueError(f"codes {self.qmin} to {self.qmax} leave the range of {self.storage}")
        self._check_shapes()
        low, high = self.storage.low, self.storage.high
        for zero in (self.zero_point.min(initial=0), self.zero_point.max(initial=0)):
            if not low <= zero <= high:
                raise ValueError(
                    f"the zero point {zero} is out of the range of {self.storage}, {low} to {high}"
                )

    def _check_scales(self) -> None:
        # A comparison of Python numbers, where there is one, is much faster than one of arrays.
        if self.scale.ndim == 0 and 0 < float(self.scale) < math.inf:
            return
        bad = np.flatnonzero(~(np.isfinite(self.scale) & (self.scale > 0)))
        if not bad.size:
            return
        scale = self.scale.flat[bad[0]]
        where = f" (entry {bad[0]})" if self.scale.ndim else ""
        advice = ""
        if -math.inf < scale < 0:
            advice = f": it turns the order of values round; quantize again with {-scale!s}"
        raise ValueError(f"the scale {scale!s} is not a finite number above zero{where}{advice}")

    def _check_shapes(self) -> None:
        if self.scale.shape != self.zero_point.shape:
            raise ValueError(
                f"the scale has shape {self.scale.shape}, the zero point {self.zero_point.shape}"
            )
        if (self.axis is None) != (self.scale.ndim == 0):
            raise ValueError("an axis is given exactly when there is more than one scale")
        if self.axis is not None and self.axis < 0:
            raise ValueError(f"the axis {self.axis} is negative")
        if self.block is None and self.scale.ndim > 1:
            raise ValueError("scales of rank 2 or more need a block size")
        if self.block is not None and (self.block < 1 or self.axis is None):
            raise ValueError(f"the block size {self.block} is not positive or has no axis")

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, QuantParams) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[object, ...]:
        return (
            self.storage,
            self.scale.shape,
            self.scale.tobytes(),
            self.zero_point.tobytes(),
            self.axis,
            self.block,
            self.expressed,
            self.qmin,
            self.qmax,
        )

    @property
    def per_tensor(self) -> bool:
        """Whether one scale and one zero point serve the whole tensor."""
        return self.axis is None

    @property
    def qmin(self) -> int:
        """The smallest code in use."""
        return self.storage.low if self.low is None else self.low

    @property
    def qmax(self) -> int:
        """The largest code in use."""
        return self.storage.high if self.high is None else self.high

    @property
    def scalar_scale(self) -> np.float32:
        """The one scale of per-tensor parameters."""
        return np.float32(self.scale[()])

    @property
    def scalar_zero_point(self) -> int:
        """The one zero point of per-tensor parameters."""
        return int(self.zero_point[()])

    def along(self, rank: int) -> tuple[Array, Array]:
        """Scale (float32) and zero point (int64) shaped to broadcast over a tensor of this rank.

        Blocked parameters do not broadcast: expand them first.
        """
        return self._along(self.scale, rank), self.zero_along(rank)

    def zero_along(self, rank: int) -> Array:
        """The zero point alone, as `along` gives it."""
        return self._along(self.zero_point, rank)

    def _along(self, values: Array, rank: int) -> Array:
        if self.axis is None or self.block is not None:
            return values
        shape = [1] * rank
        shape[self.axis] = values.size
        return values.reshape(shape)

    @property
    def is_narrow(self) -> bool:
        """Whether the codes use less than the range of the storage type."""
        return (self.qmin, self.qmax) != (self.storage.low, self.storage.high)

    def limited(self, low: int | None, high: int | None) -> QuantParams:
        """The same parameters for codes from `low` to `high`; None for a whole side.

        Limits beyond the storage range do not limit, and are not kept.
        """
        low = None if low is None or low <= self.storage.low else min(low, self.storage.high)
        high = None if high is None or high >= self.storage.high else max(high, self.storage.low)
        # Limits the wrong way round leave the upper one, as in ONNX Clip.
        low = high if low is not None and high is not None and low > high else low
        return self.model_copy(update={"low": low, "high": high})

    def covers(self, other: QuantParams) -> bool:
        """Whether codes with the other parameters mean the same with these, and are in range."""
        return (
            self.qmin <= other.qmin
            and other.qmax <= self.qmax
            and self.limited(None, None) == other.limited(None, None)
        )

    def with_axis(self, axis: int | None) -> QuantParams:
        """The same parameters along another axis, after a transpose or reshape.

        Raises ValueError for a negative axis, or None where there is more than one scale.
        """
        moved = self.model_copy(update={"axis": axis})
        moved._check_shapes()
        return moved


def accumulator(
    scale: Array, axis: int | None, storage: DType = DType.I32, expressed: DType = DType.F32
) -> QuantParams:
    """Parameters of a sum of products: zero point 0, the scale the product of the inputs' scales.

    A per-axis scale of length 1 is kept per axis; `axis` is None exactly for rank 0. `expressed` is
    the float type of the real sums, that of the inputs.
    """
    zeros = np.zeros(np.shape(scale), np.int64)
    return QuantParams(
        storage=storage, scale=scale, zero_point=zeros, axis=axis, expressed=expressed
    )


def _check_blocks(params: QuantParams, shape: tuple[Dim, ...], block: int) -> None:
    if len(shape) != params.scale.ndim:
        raise ValueError(f"blocked scales of rank {params.scale.ndim} for rank {len(shape)}")
    for axis, (size, count) in enumerate(zip(shape, params.scale.shape, strict=True)):
        blocks = count if isinstance(size, str) else size
        if axis == params.axis and isinstance(size, int):
            blocks = -(-size // block)
        if blocks != count:
            raise ValueError(f"{count} scales along axis {axis}, which has {blocks} blocks")


class TensorType(Record):
    """The type of a value.

    Attributes:
        dtype: element type; the storage type when `quant` is given.
        shape: sizes and symbols, `"?"` for an unknown size; None for an unknown rank.
        quant: quantization parameters, or None for a value that is not quantized.
        container: for `DType.CONTAINER` the ONNX spelling, such as `seq(tensor(float))`.
    """

    dtype: DType
    shape: tuple[Dim, ...] | None
    quant: QuantParams | None = None
    container: str | None = None

    def model_post_init(self, context: Any, /) -> None:
        """Validate once, as `QuantParams` does."""
        if self.quant is not None:
            if self.quant.storage != self.dtype:
                raise ValueError(f"{self.dtype} codes with parameters for {self.quant.storage}")
            if self.shape is not None and self.quant.axis is not None:
                _check_axis(self.shape, self.quant, self.quant.axis)

    @property
    def rank(self) -> int | None:
        """The number of axes, or None when it is not known."""
        return None if self.shape is None else len(self.shape)

    @property
    def is_integer(self) -> bool:
        """Whether the elements are integers, quantized or not."""
        return self.dtype.is_integer

    @property
    def params(self) -> QuantParams:
        """The quantization parameters of a value known to be quantized."""
        if self.quant is None:
            raise ValueError("the value is not quantized")
        return self.quant

    def with_shape(self, shape: Sequence[Dim] | None) -> TensorType:
        """The same elements in another shape."""
        return TensorType(
            dtype=self.dtype,
            shape=None if shape is None else tuple(shape),
            quant=self.quant,
            container=self.container,
        )


def _check_axis(shape: tuple[Dim, ...], params: QuantParams, axis: int) -> None:
    if not 0 <= axis < len(shape):
        raise ValueError(f"axis {axis} is out of range for rank {len(shape)}")
    if params.block is not None:
        _check_blocks(params, shape, params.block)
        return
    size = shape[axis]
    if isinstance(size, int) and size != params.scale.size:
        raise ValueError(f"{params.scale.size} scales along axis {axis}, which has {size} elements")


def quantized(params: QuantParams, shape: Sequence[Dim] | None) -> TensorType:
    """The type of codes with these parameters."""
    return TensorType(
        dtype=params.storage, shape=None if shape is None else tuple(shape), quant=params
    )


def plain(dtype: DType, shape: Sequence[Dim] | None) -> TensorType:
    """The type of a tensor without quantization parameters."""
    return _plain(dtype, None if shape is None else tuple(shape))


@lru_cache(maxsize=4096)
def _plain(dtype: DType, shape: tuple[Dim, ...] | None) -> TensorType:
    """Most values of a model share a few types: each is one record."""
    return TensorType(dtype=dtype, shape=shape)


def static_shape(shape: Sequence[Dim] | None) -> tuple[int, ...] | None:
    """The shape when every size is a number, else None."""
    if shape is None or not all(isinstance(size, int) for size in shape):
        return None
    return tuple(int(size) for size in shape)
