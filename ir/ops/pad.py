"""Pad a tensor along its axes."""

from __future__ import annotations

from typing import ClassVar, Literal

from intonnx.ir.op import Op, OperandTypes, ResultTypes, register_op

PadMode = Literal["constant", "reflect", "edge", "wrap"]


@register_op
class Pad(Op):
    """Extend `x` by `before[i]` and `after[i]` elements on axis i; negative amounts crop.

    Operands: `x`, integers, quantized or not. Result: the type of `x` with the padded shape.
    `fill` is a code of the storage type: for a quantized type, real zero is its zero point.
    Source: ONNX Pad-21.

    Constraints:
        C1: `before` and `after` have one entry an axis.
        C2: `fill` fits the storage type, and is given exactly when `mode` is "constant".
        C3: an axis with per-axis parameters is not padded.
        C4: cropping leaves every axis at length 0 or more; of what it leaves, "reflect" pads less
            than the length, and "edge" and "wrap" do not pad an empty axis.
        C5: `x` holds integers.
    """

    name: ClassVar[str] = "qnn.pad"
    signature: ClassVar[tuple[str, ...]] = ("x",)
    kind: ClassVar[str] = "mover"
    before: tuple[int, ...]
    after: tuple[int, ...]
    mode: PadMode = "constant"
    fill: int | None = None

    def infer(self, operands: OperandTypes) -> ResultTypes:
        x = self.operand(operands, 0)
        shape = self.shape_of(operands, 0, "C1")
        self.require(x.is_integer, "C5", f"the operand is {x.dtype}")
        fits = len(self.before) == len(self.after) == len(shape)
        self.require(fits, "C1", f"{len(self.before)} amounts for rank {len(shape)}")
        self.require((self.fill is None) == (self.mode != "constant"), "C2", f"fill {self.fill}")
        if self.fill is not None:
            in_range = x.dtype.low <= self.fill <= x.dtype.high
            self.require(in_range, "C2", f"fill {self.fill} for {x.dtype}")
        if x.quant is not None and x.quant.axis is not None:
            still = self.before[x.quant.axis] == self.after[x.quant.axis] == 0
            self.require(still, "C3", f"axis {x.quant.axis} is padded")
        return (x.with_shape([self._size(size, i) for i, size in enumerate(shape)]),)

    def _size(self, size: int | str, axis: int) -> int | str:
        before, after = self.before[axis], self.after[axis]
        if isinstance(size, str):
            return size if before == after == 0 else "?"
        left = size + min(0, before) + min(0, after)
        self.require(left >= 0, "C4", f"axis {axis} has {size} elements")
        if self.mode != "constant":
            grows = max(before, after)
            fits = grows <= 0 or (grows < left if self.mode == "reflect" else left > 0)
            self.require(fits, "C4", f"axis {axis} has {left} elements to pad from")
        return size + before + after
