"""Pick single elements or slices of a tensor by their coordinates."""

from __future__ import annotations

from typing import ClassVar

from intonnx.ir.op import Op, OperandTypes, ResultTypes, register_op
from intonnx.ir.shapes import normalized_axes, with_parameters
from intonnx.ir.types import Dim, QuantParams, TensorType


@register_op
class GatherElements(Op):
    """The elements of `x` whose coordinate along `axis` is in `indices`, the others are its place.

    Operands: `x`, any type, rank r; `indices`, integers of rank r, from -n to n - 1 for an axis of
    n elements (others fail at run time), along other axes no longer than `x`. Result: the type of
    `x` in the shape of `indices`; per-axis parameters stay. Source: ONNX GatherElements-13.

    Constraints:
        C1: `axis` is an axis of `x`; without a known rank it is not negative.
        C2: `indices` holds integers without quantization parameters, has the rank of `x`, and is no
            longer along other axes.
        C3: parameters are not along `axis` or an axis that gets shorter, and not blocked.
    """

    name: ClassVar[str] = "qnn.gather_elements"
    signature: ClassVar[tuple[str, ...]] = ("x", "indices")
    kind: ClassVar[str] = "mover"
    axis: int = 0

    def infer(self, operands: OperandTypes) -> ResultTypes:
        x, indices = self.operand(operands, 0), self.operand(operands, 1)
        plain = indices.is_integer and indices.quant is None
        self.require(plain, "C2", f"the indices are {indices.dtype}")
        rank = x.rank if x.rank is not None else indices.rank
        fits = indices.rank in (None, rank)
        self.require(fits, "C2", f"rank {indices.rank} of the indices, {x.rank} of x")
        if rank is None:
            self.require(self.axis >= 0, "C1", "the rank is not known")
        else:
            axis = normalized_axes(self, [self.axis], rank, "C1")[0]
            require_reach(self, x, indices, axis, "C2")
        self._check_parameters(x, indices)
        return (with_parameters(x, indices.shape, x.quant),)

    def _check_parameters(self, x: TensorType, indices: TensorType) -> None:
        if x.quant is None or x.quant.axis is None:
            return
        own = x.quant.axis
        self.require(x.quant.block is None, "C3", "x has blocked parameters")
        self.require(x.shape is not None and indices.shape is not None, "C3", "no rank is known")
        assert x.shape is not None
        assert indices.shape is not None
        moved = self.axis % len(x.shape) == own
        self.require(not moved, "C3", f"x has a scale for each index of axis {own}")
        self.require(x.shape[own] == indices.shape[own], "C3", f"axis {own} gets shorter")


def require_reach(op: Op, x: TensorType, indices: TensorType, axis: int, constraint: str) -> None:
    """Raise TypeFailure where indices along `axis` are longer than `x` along another axis."""
    for place, sizes in enumerate(zip(x.shape or (), indices.shape or (), strict=False)):
        known = [size for size in sizes if isinstance(size, int)]
        fits = place == axis or len(known) < 2 or known[1] <= known[0]
        op.require(fits, constraint, f"indices {indices.shape} for {x.shape}")


@register_op
class GatherNd(Op):
    """The slices of `x` whose leading coordinates are the rows of `indices`.

    Operands: `x`, any type, rank r; `indices`, integers [*batch, ..., k]: each row of k numbers
    counts along the axes after the `batch_dims` leading ones, which `x` and `indices` share.
    Numbers are from -n to n - 1 for an axis of n elements; others fail at run time. Result: the
    type of `x` in the shape of `indices` without k, then the axes of `x` that no number is for;
    per-axis parameters follow their axis. Source: ONNX GatherND-13.

    Constraints:
        C1: `indices` holds integers without quantization parameters, and has an axis.
        C2: `batch_dims` is below the rank of `indices`; the rows are no longer than the rank of
            `x` without the batch.
        C3: parameters are not along an axis that a number is for, and not blocked; per-axis ones
            need known ranks.
    """

    name: ClassVar[str] = "qnn.gather_nd"
    signature: ClassVar[tuple[str, ...]] = ("x", "indices")
    kind: ClassVar[str] = "mover"
    batch_dims: int = 0

    def infer(self, operands: OperandTypes) -> ResultTypes:
        x, indices = self.operand(operands, 0), self.operand(operands, 1)
        plain = indices.is_integer and indices.quant is None and indices.rank != 0
        self.require(plain, "C1", f"the indices are {indices.dtype} of rank {indices.rank}")
        length: Dim | None = indices.shape[-1] if indices.shape is not None else None
        if x.shape is None or indices.shape is None or not isinstance(length, int):
            self.require(x.quant is None or x.quant.per_tensor, "C3", "a rank is not known")
            return (x.with_shape(None),)
        picked = self.batch_dims + length
        fits = 0 <= self.batch_dims < len(indices.shape) and picked <= len(x.shape)
        cause = f"rows of {length} and {self.batch_dims} batch axes for rank {len(x.shape)}"
        self.require(fits, "C2", cause)
        shape = [*indices.shape[:-1], *x.shape[picked:]]
        shift = len(indices.shape) - 1 - picked
        return (with_parameters(x, shape, self._params(x.quant, picked, shift)),)

    def _params(self, params: QuantParams | None, picked: int, shift: int) -> QuantParams | None:
        if params is None or params.axis is None:
            return params
        self.require(params.block is None, "C3", "x has blocked parameters")
        if params.axis < self.batch_dims:
            return params
        free = params.axis >= picked
        self.require(free, "C3", f"x has a scale for each index of axis {params.axis}")
        return params.with_axis(params.axis + shift)
