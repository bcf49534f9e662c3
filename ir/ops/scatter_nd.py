"""Write elements or slices of a tensor at given coordinates."""

from __future__ import annotations

from typing import ClassVar

from intonnx.ir.op import OperandTypes, ResultTypes, register_op
from intonnx.ir.ops.gather_elements import require_reach
from intonnx.ir.selection import Selection
from intonnx.ir.shapes import normalized_axes
from intonnx.ir.types import TensorType


class _Scatter(Selection):
    signature: ClassVar[tuple[str, ...]] = ("data", "indices", "updates")

    def _types(self, operands: OperandTypes) -> tuple[TensorType, TensorType, TensorType]:
        """The types of the operands; C1 and C2 hold."""
        data, indices, updates = (self.operand(operands, index) for index in range(3))
        self.selected([data, updates], None, "C1")
        plain = indices.is_integer and indices.quant is None
        self.require(plain, "C2", f"the indices are {indices.dtype}")
        return data, indices, updates


@register_op
class ScatterNd(_Scatter):
    """A copy of `data` in which `updates` stand at the coordinates in `indices`.

    Operands: `data`, rank r; `indices`, integers [..., k]: each row of k numbers counts along the
    first k axes, from -n to n - 1 for an axis of n elements (others fail at run time); `updates`
    in the shape of `indices` without k, then the axes of `data` that no number is for. Of updates
    at one place the last one stays. Either `data` and `updates` are quantized and the result has
    the parameters `out`: an operand with just these is used as it is, the other is dequantized and
    quantized. Or they hold plain integers of one type, `out` is None, and so does the result.
    Result: the shape of `data`. Source: ONNX ScatterND-18 without a reduction.

    Constraints:
        C1: `data` and `updates` are quantized per tensor with codes of 16 bits or fewer and `out`
            is per tensor, or `out` is None and both are plain integers of one type.
        C2: `indices` holds integers without quantization parameters.
        C3: the rows are no longer than the rank of `data`; `updates` has the shape of the slices.
    """

    name: ClassVar[str] = "qnn.scatter_nd"

    def infer(self, operands: OperandTypes) -> ResultTypes:
        data, indices, updates = self._types(operands)
        self.require(indices.rank != 0, "C3", "the indices have no axis")
        length = None if indices.shape is None else indices.shape[-1]
        if data.shape is not None and indices.shape is not None and isinstance(length, int):
            fits = length <= len(data.shape)
            self.require(fits, "C3", f"rows of {length} for rank {len(data.shape)}")
            slices = (*indices.shape[:-1], *data.shape[length:])
            given = slices if updates.shape is None else updates.shape
            pairs = list(zip(slices, given, strict=False))
            numbers = [pair for pair in pairs if all(isinstance(size, int) for size in pair)]
            fits = len(slices) == len(given) and all(a == b for a, b in numbers)
            self.require(fits, "C3", f"updates {given} for slices {slices}")
        return (self.selected([data, updates], data.shape, "C1"),)


@register_op
class ScatterElements(_Scatter):
    """A copy of `data` in which each element of `updates` stands where `indices` says.

    Operands: `data`, rank r; `indices`, integers of rank r: coordinates along `axis`, from -n to
    n - 1 for an axis of n elements (others fail at run time), the other coordinates are their
    place; `updates` in the shape of `indices`. Of updates at one place the last one stays. The
    parameters are those of `ScatterNd`. Result: the shape of `data`.
    Source: ONNX ScatterElements-18 without a reduction.

    Constraints:
        C1: `data` and `updates` are quantized per tensor with codes of 16 bits or fewer and `out`
            is per tensor, or `out` is None and both are plain integers of one type.
        C2: `indices` holds integers without quantization parameters.
        C3: `indices` and `updates` have the rank of `data` and, along axes other than `axis`, are
            no longer than it; they have one shape.
        C4: `axis` is an axis of `data`; without a known rank it is not negative.
    """

    name: ClassVar[str] = "qnn.scatter_elements"
    axis: int = 0

    def infer(self, operands: OperandTypes) -> ResultTypes:
        data, indices, updates = self._types(operands)
        ranks = {kind.rank for kind in (data, indices, updates)} - {None}
        self.require(len(ranks) <= 1, "C3", f"ranks {sorted(map(str, ranks))}")
        if data.rank is None:
            self.require(self.axis >= 0, "C4", "the rank is not known")
        else:
            axis = normalized_axes(self, [self.axis], data.rank, "C4")[0]
            require_reach(self, data, indices, axis, "C3")
        pairs = list(zip(indices.shape or (), updates.shape or (), strict=False))
        numbers = [pair for pair in pairs if all(isinstance(size, int) for size in pair)]
        fits = all(a == b for a, b in numbers)
        self.require(fits, "C3", f"updates {updates.shape} for indices {indices.shape}")
        return (self.selected([data, updates], data.shape, "C1"),)
