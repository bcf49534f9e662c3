"""Resize a tensor along some of its axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from intonnx.ir.op import Op, OperandTypes, ResultTypes, register_op
from intonnx.ir.shapes import normalized_axes
from intonnx.ir.types import UNKNOWN_DIM, Array, Dim, QuantParams, TensorType, quantized

Coordinates = Literal[
    "half_pixel",
    "half_pixel_symmetric",
    "pytorch_half_pixel",
    "align_corners",
    "asymmetric",
    "tf_half_pixel_for_nn",
    "tf_crop_and_resize",
]
NearestMode = Literal["round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "simple"]
"""`simple` is that of Resize-10: ceil where the scale is below 1, else floor."""
Policy = Literal["stretch", "not_larger", "not_smaller"]


class Extent(NamedTuple):
    """One axis of a resize: its sizes before and after, and the scale (float32) between them."""

    before: int
    after: int
    scale: np.float32


class Resampling(Op):
    """What both resize operators share: which axes get which size.

    Attributes:
        axes: the axes that are resized, from 0 on.
        scales: the size of the result over that of `x`, for each of the axes; or
        sizes: the sizes themselves.
        policy: with `sizes`, whether the proportions are kept and which size then counts.
        coordinates: where a cell of the result lies in `x`, as in ONNX.
        nearest_mode: which cell is the nearest, in `nearest` mode.
    """

    signature: ClassVar[tuple[str, ...]] = ("x",)
    axes: tuple[int, ...]
    scales: tuple[float, ...] | None = None
    sizes: tuple[int, ...] | None = None
    policy: Policy = "stretch"
    coordinates: Coordinates = "half_pixel"
    nearest_mode: NearestMode = "round_prefer_floor"

    def resized(self, shape: Sequence[Dim]) -> list[Dim]:
        """The shape of the result. Raises TypeFailure when a constraint is violated."""
        axes = normalized_axes(self, self.axes, len(shape), "C1")
        self.require(axes == self.axes, "C1", f"axes {list(self.axes)} are not all from 0 on")
        given = self.scales if self.sizes is None else self.sizes
        self.require((self.scales is None) != (self.sizes is None), "C2", "not one target")
        assert given is not None
        self.require(len(given) == len(axes), "C2", f"{len(given)} targets for {len(axes)} axes")
        positive = all(number > 0 and np.isfinite(number) for number in given)
        self.require(positive, "C2", f"the targets are {list(given)}")
        result = list(shape)
        known = [size for size in (shape[axis] for axis in axes) if isinstance(size, int)]
        if len(known) == len(axes):
            for axis, extent in zip(axes, self.extents(known), strict=True):
                result[axis] = extent.after
            return result
        for axis, number in zip(axes, given, strict=True):
            result[axis] = self._size(shape[axis], number)
        return result

    def _size(self, size: Dim, number: float) -> Dim:
        """The new size of one axis, when that of another is not known."""
        if self.sizes is not None:
            return int(number) if self.policy == "stretch" else UNKNOWN_DIM
        if isinstance(size, int):
            return int(np.float32(number) * np.float32(size))
        return size if number == 1 else UNKNOWN_DIM

    def extents(self, sizes: Sequence[int]) -> list[Extent]:
        """The axes that are resized, for the sizes that they have in `x`.

        Sizes and scales are computed in float32, as onnxruntime does.
        """
        before: Array = np.asarray(sizes, np.float32)
        if self.scales is not None:
            scales: Array = np.asarray(self.scales, np.float32)
            after: Array = (scales * before).astype(np.int64)
        else:
            after = np.asarray(self.sizes, np.int64)
            scales = after.astype(np.float32) / np.maximum(before, np.float32(1))
            if self.policy != "stretch" and scales.size:
                kept = scales.min() if self.policy == "not_larger" else scales.max()
                scales = np.full_like(scales, kept)
                after = np.floor(scales * before + np.float32(0.5)).astype(np.int64)
        rows = zip(sizes, after.tolist(), scales, strict=True)
        return [Extent(size, int(new), np.float32(scale)) for size, new, scale in rows]


@register_op
class ResizeNearest(Resampling):
    """Each cell of the result is the nearest cell of `x`: codes are moved, and nothing else.

    Operands: `x`, any type. Result: the type of `x` in the new shape. Source: ONNX Resize-19 with
    mode nearest; coordinates are computed in float32, as onnxruntime does.

    Constraints:
        C1: `axes` are axes of `x`, each named once.
        C2: either `scales` or `sizes` has a positive number for each of the axes.
        C3: an axis with per-axis or blocked parameters is not resized.
        C4: `coordinates` crop nothing.
    """

    name: ClassVar[str] = "qnn.resize_nearest"
    kind: ClassVar[str] = "mover"

    def infer(self, operands: OperandTypes) -> ResultTypes:
        x, shape = self.operand(operands, 0), self.shape_of(operands, 0, "C1")
        fixed = _quantized_axes(x)
        self.require(not fixed & set(self.axes), "C3", f"the axes {sorted(fixed)} have parameters")
        self.require(self.coordinates != "tf_crop_and_resize", "C4", "a crop has other values too")
        return (x.with_shape(self.resized(shape)),)


@register_op
class Resize(Resampling):
    """Interpolate between the cells of `x`, and quantize.

    Operands: `x`, quantized. Result: codes with the parameters `out` in the new shape. The weights
    of an axis follow from float32 coordinates, as onnxruntime computes them; the weighted mean of
    the real values is computed in float64 and rounded once, half to even.
    Source: ONNX Resize-19; onnxruntime, whose float32 mean may round the other way (one quantum).

    Attributes:
        mode: `linear` has 2 cells an axis, `cubic` 4, `nearest` 1.
        cubic_a: the coefficient of the cubic.
        exclude_outside: whether cells outside `x` have no weight, in `cubic` mode; else they have
            the value of the cell at the border.
        region: with `tf_crop_and_resize` the part of `x`, first the starts then the ends of the
            axes, from 0 to 1.
        extrapolation: the real value of cells outside `x`, with `tf_crop_and_resize`.
        out: the parameters of the result.

    Constraints:
        C1: `axes` are axes of `x`, each named once.
        C2: either `scales` or `sizes` has a positive number for each of the axes.
        C3: `x` is quantized, without blocks, and per axis along an axis only that is not resized.
        C4: `region` is given exactly when `coordinates` crop, with two numbers an axis.
        C5: `out` is per tensor, in at most 16 bits.
    """

    name: ClassVar[str] = "qnn.resize"
    mode: Literal["nearest", "linear", "cubic"] = "linear"
    cubic_a: float = -0.75
    exclude_outside: bool = False
    region: tuple[float, ...] | None = None
    extrapolation: float = 0.0
    out: QuantParams

    def infer(self, operands: OperandTypes) -> ResultTypes:
        x, shape = self.operand(operands, 0), self.shape_of(operands, 0, "C1")
        self.require(x.quant is not None, "C3", f"the operand is {x.dtype}, not quantized")
        fixed = _quantized_axes(x)
        fits = x.params.block is None and not fixed & set(self.axes)
        self.require(fits, "C3", f"the axes {sorted(fixed)} have parameters")
        crops = self.coordinates == "tf_crop_and_resize"
        fits = (self.region is not None) == crops
        fits = fits and (self.region is None or len(self.region) == 2 * len(self.axes))
        self.require(fits, "C4", f"the region is {self.region}")
        fits = self.out.per_tensor and self.out.storage.bits <= 16
        self.require(fits, "C5", f"the result is {self.out.storage}, or quantized per axis")
        return (quantized(self.out, self.resized(shape)),)


def _quantized_axes(x: TensorType) -> set[int]:
    """The axes that parameters vary along."""
    if x.quant is None or x.quant.axis is None:
        return set()
    return set(range(x.quant.scale.ndim)) if x.quant.block is not None else {x.quant.axis}
