"""Trade channels for pixels, and back."""

from __future__ import annotations

from typing import ClassVar, Literal

from intonnx.ir.op import Op, OperandTypes, ResultTypes, register_op
from intonnx.ir.types import UNKNOWN_DIM, Dim, TensorType


class _Blocks(Op):
    signature: ClassVar[tuple[str, ...]] = ("x",)
    kind: ClassVar[str] = "mover"
    blocksize: int

    def _operand(self, operands: OperandTypes) -> tuple[TensorType, tuple[Dim, ...]]:
        x = self.operand(operands, 0)
        self.require(self.blocksize > 0, "C1", f"blocks of {self.blocksize}")
        self.require(x.rank in (None, 4), "C1", f"the operand has rank {x.rank}")
        kept = x.quant is None or x.quant.per_tensor or (x.quant.axis == 0 and not x.quant.block)
        self.require(kept, "C3", "x is quantized per axis")
        return x, x.shape or (UNKNOWN_DIM,) * 4

    def _divided(self, size: Dim, divisor: int) -> Dim:
        if isinstance(size, str):
            return size if divisor == 1 else UNKNOWN_DIM
        self.require(size % divisor == 0, "C2", f"{size} is no multiple of {divisor}")
        return size // divisor


def _times(size: Dim, factor: int) -> Dim:
    if isinstance(size, str):
        return size if factor == 1 else UNKNOWN_DIM
    return size * factor


@register_op
class DepthToSpace(_Blocks):
    """Spread the channels of each pixel over a square of `blocksize` by `blocksize` pixels.

    Operands: `x` [N, C, H, W], any type. Result: the type of `x` with the shape
    [N, C / blocksize^2, H * blocksize, W * blocksize]. In the mode "DCR" (depth, column, row) the
    place in the square is the slow part of the channel's index, in "CRD" the fast part.
    Source: ONNX DepthToSpace-13.

    Constraints:
        C1: `x` has rank 4, and `blocksize` is above 0.
        C2: the channels divide by the square of `blocksize`.
        C3: `x` has no per-axis parameters, except along the batch.
    """

    name: ClassVar[str] = "qnn.depth_to_space"
    mode: Literal["DCR", "CRD"] = "DCR"

    def infer(self, operands: OperandTypes) -> ResultTypes:
        x, (n, c, h, w) = self._operand(operands)
        b = self.blocksize
        return (x.with_shape([n, self._divided(c, b * b), _times(h, b), _times(w, b)]),)


@register_op
class SpaceToDepth(_Blocks):
    """Stack each square of `blocksize` by `blocksize` pixels in the channels of one pixel.

    Operands: `x` [N, C, H, W], any type. Result: the type of `x` with the shape
    [N, C * blocksize^2, H / blocksize, W / blocksize]; the place in the square is the slow part of
    the channel's index. Source: ONNX SpaceToDepth-13.

    Constraints:
        C1: `x` has rank 4, and `blocksize` is above 0.
        C2: height and width divide by `blocksize`.
        C3: `x` has no per-axis parameters, except along the batch.
    """

    name: ClassVar[str] = "qnn.space_to_depth"

    def infer(self, operands: OperandTypes) -> ResultTypes:
        x, (n, c, h, w) = self._operand(operands)
        b = self.blocksize
        return (x.with_shape([n, _times(c, b * b), self._divided(h, b), self._divided(w, b)]),)
