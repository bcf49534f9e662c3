"""Join tensors along an axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from intonnx.ir.op import OperandTypes, ResultTypes, register_op
from intonnx.ir.selection import Selection
from intonnx.ir.types import UNKNOWN_DIM, Dim


@register_op
class Concatenate(Selection):
    """The operands one after the other along `axis`, each requantized to the result's parameters.

    Operands: one or more, of equal rank. Either all are quantized and the result has the parameters
    `out`: an operand with just these is copied, any other is dequantized and quantized. Or all hold
    plain integers of one type, `out` is None, and so does the result.
    Source: ONNX Concat-13; onnxruntime QLinearConcat.

    Constraints:
        C1: there is an operand; all are quantized per tensor with codes of 16 bits or fewer and
            `out` is per tensor, or `out` is None and all are plain integers of one type.
        C2: `axis` is an axis of every operand, counted from the front.
        C3: the operands have equal rank, and equal sizes along every axis but `axis`.
    """

    name: ClassVar[str] = "qnn.concatenate"
    signature: ClassVar[tuple[str, ...]] = ("inputs*",)
    axis: int

    def infer(self, operands: OperandTypes) -> ResultTypes:
        kinds = [self.operand(operands, i, "C1") for i in range(max(1, len(operands)))]
        self.selected(kinds, None, "C1")
        shape = self._joined([self.shape_of(operands, i, "C3") for i in range(len(kinds))])
        return (self.selected(kinds, shape, "C1"),)

    def _joined(self, shapes: Sequence[Sequence[Dim]]) -> list[Dim]:
        rank = len(shapes[0])
        self.require(all(len(s) == rank for s in shapes), "C3", "the ranks are not equal")
        self.require(0 <= self.axis < rank, "C2", f"axis {self.axis} of rank {rank}")
        result: list[Dim] = []
        for axis, sizes in enumerate(zip(*shapes, strict=True)):
            known = [size for size in sizes if isinstance(size, int)]
            if axis == self.axis:
                result.append(sum(known) if len(known) == len(sizes) else UNKNOWN_DIM)
                continue
            self.require(len(set(known)) <= 1, "C3", f"sizes {known} along axis {axis}")
            # A number beside symbols is the size that they all have.
            result.append(known[0] if known else _common(sizes))
        return result


def _common(sizes: Sequence[Dim]) -> Dim:
    return sizes[0] if len(set(sizes)) == 1 else UNKNOWN_DIM
