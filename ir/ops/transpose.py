"""Permute the axes of a tensor."""

from __future__ import annotations

from typing import ClassVar

from intonnx.ir.op import Op, OperandTypes, ResultTypes, register_op
from intonnx.ir.shapes import rearranged, with_parameters
from intonnx.ir.types import UNKNOWN_DIM, QuantParams


@register_op
class Transpose(Op):
    """Axis i of the result is axis `perm[i]` of `x`; without `perm` the axes are reversed.

    Operands: `x`, any type. Result: the type of `x` with the permuted shape; per-axis and blocked
    parameters follow their axis. Source: ONNX Transpose-13.

    Constraints:
        C1: `perm` names every axis of `x` once.
        C2: without `perm`, per-axis parameters need a known rank.
    """

    name: ClassVar[str] = "qnn.transpose"
    signature: ClassVar[tuple[str, ...]] = ("x",)
    kind: ClassVar[str] = "mover"
    perm: tuple[int, ...] | None = None

    def infer(self, operands: OperandTypes) -> ResultTypes:
        x = self.operand(operands, 0)
        perm = self._permutation(x.rank)
        if perm is None:
            self.require(x.quant is None or x.quant.per_tensor, "C2", "the rank is not known")
            return (x,)
        shape = [UNKNOWN_DIM if x.shape is None else x.shape[axis] for axis in perm]
        return (with_parameters(x, shape, _permuted(x.quant, perm)),)

    def _permutation(self, rank: int | None) -> tuple[int, ...] | None:
        if self.perm is None:
            return None if rank is None else tuple(reversed(range(rank)))
        every = tuple(range(len(self.perm) if rank is None else rank))
        fits = tuple(sorted(self.perm)) == every
        self.require(fits, "C1", f"perm {list(self.perm)} for rank {len(every)}")
        return self.perm


def _permuted(params: QuantParams | None, perm: tuple[int, ...]) -> QuantParams | None:
    if params is None or params.axis is None:
        return params
    axis = perm.index(params.axis)
    if params.block is None:
        return params.with_axis(axis)
    return rearranged(params, lambda scales: scales.transpose(perm), axis)
