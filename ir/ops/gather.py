"""Pick slices of a tensor by their indices."""

from __future__ import annotations

from typing import ClassVar

from intonnx.ir.op import Op, OperandTypes, ResultTypes, register_op
from intonnx.ir.shapes import normalized_axes, with_parameters
from intonnx.ir.types import QuantParams


@register_op
class Gather(Op):
    """The slices of `x` along `axis` at `indices`; the axes of `indices` stand in place of `axis`.

    Operands: `x`, any type, rank r; `indices`, integers of any shape, from -n to n - 1 for an axis
    of n elements (others fail at run time). Result: the type of `x`, rank r - 1 plus that of
    `indices`; per-axis parameters follow their axis. Source: ONNX Gather-13.

    Constraints:
        C1: `axis` is an axis of `x`; without a known rank it is not negative.
        C2: `indices` holds integers without quantization parameters.
        C3: parameters are not along `axis`, and not blocked; per-axis ones need known ranks.
    """

    name: ClassVar[str] = "qnn.gather"
    signature: ClassVar[tuple[str, ...]] = ("x", "indices")
    kind: ClassVar[str] = "mover"
    axis: int = 0

    def infer(self, operands: OperandTypes) -> ResultTypes:
        x, indices = self.operand(operands, 0), self.operand(operands, 1)
        plain = indices.is_integer and indices.quant is None
        self.require(plain, "C2", f"the indices are {indices.dtype}")
        if x.shape is None or indices.shape is None:
            self.require(x.shape is not None or self.axis >= 0, "C1", "the rank is not known")
            self.require(x.quant is None or x.quant.per_tensor, "C3", "a rank is not known")
            return (x.with_shape(None),)
        axis = normalized_axes(self, [self.axis], len(x.shape), "C1")[0]
        shape = [*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]]
        return (with_parameters(x, shape, self._params(x.quant, axis, len(indices.shape))),)

    def _params(self, params: QuantParams | None, axis: int, rank: int) -> QuantParams | None:
        if params is None or params.axis is None:
            return params
        self.require(params.block is None, "C3", "x has blocked parameters")
        self.require(params.axis != axis, "C3", f"x has a scale for each index of axis {axis}")
        return params.with_axis(params.axis + (rank - 1 if params.axis > axis else 0))
