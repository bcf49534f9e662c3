"""Cut a tensor into several along one axis."""

from __future__ import annotations

from typing import ClassVar

from intonnx.ir.op import Op, OperandTypes, ResultTypes, register_op
from intonnx.ir.shapes import normalized_axes, rearranged, with_parameters
from intonnx.ir.types import UNKNOWN_DIM, Dim, QuantParams


@register_op
class Split(Op):
    """Consecutive parts of `x` along `axis`, of the sizes `sizes` or in `parts` of one size.

    When the axis does not divide by `parts`, the last part is smaller. Operands: `x`, any type.
    Results: one for each part, the type of `x` with the part's shape; per-axis parameters along
    `axis` are split with it. Source: ONNX Split-18.

    Constraints:
        C1: `axis` is an axis of `x`; without a known rank it is not negative, nor is `x` per axis.
        C2: either `sizes` or `parts` is given; sizes are not negative and `parts` is above 0.
        C3: the sizes add up to the axis; it is long enough for `parts` of them.
        C4: parts of a per-axis axis have known sizes above 0; a blocked axis is not split.
    """

    name: ClassVar[str] = "qnn.split"
    signature: ClassVar[tuple[str, ...]] = ("x",)
    kind: ClassVar[str] = "mover"
    axis: int = 0
    sizes: tuple[int, ...] | None = None
    parts: int | None = None

    def infer(self, operands: OperandTypes) -> ResultTypes:
        x = self.operand(operands, 0)
        self.require((self.sizes is None) != (self.parts is None), "C2", "not one of them")
        self.require(min(self.sizes or (0,)) >= 0, "C2", f"the sizes are {self.sizes}")
        self.require(self.parts is None or self.parts > 0, "C2", f"{self.parts} parts")
        if x.shape is None:
            known = self.axis >= 0 and (x.quant is None or x.quant.per_tensor)
            self.require(known, "C1", "the rank is not known")
            return (x,) * (self.parts or len(self.sizes or ()))
        axis = normalized_axes(self, [self.axis], len(x.shape), "C1")[0]
        results: list[Dim] = self._sizes(x.shape[axis])
        before, shape = 0, list(x.shape)
        found = []
        for size in results:
            shape[axis] = size
            params = self._part(x.quant, axis, before, size)
            found.append(with_parameters(x, shape, params))
            before += size if isinstance(size, int) else 0
        return tuple(found)

    def sizes_of(self, size: int) -> list[int]:
        """The sizes of the parts of an axis with this size. Raises TypeFailure for C3."""
        if self.sizes is not None:
            self.require(sum(self.sizes) == size, "C3", f"sizes {self.sizes} of {size} elements")
            return list(self.sizes)
        parts = self.parts or 1
        each = -(-size // parts)
        last = size - each * (parts - 1)
        self.require(last >= 0, "C3", f"{size} elements do not make {parts} parts of {each}")
        return [*[each] * (parts - 1), last]

    def _sizes(self, size: Dim) -> list[Dim]:
        if isinstance(size, int):
            return list(self.sizes_of(size))
        return list(self.sizes) if self.sizes is not None else [UNKNOWN_DIM] * (self.parts or 1)

    def _part(
        self, params: QuantParams | None, axis: int, before: int, size: Dim
    ) -> QuantParams | None:
        if params is None or params.axis is None:
            return params
        if params.block is None and params.axis != axis:
            return params
        self.require(params.block is None, "C4", "x has blocked parameters")
        known = isinstance(size, int) and size > 0
        self.require(known, "C4", f"a part of the per-axis axis {axis} has {size} elements")
        end = before + int(size)
        return rearranged(params, lambda scales: scales[before:end], axis)
