"""A matrix product whose right side has scales by blocks of the shared axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from intonnx.ir.bounds import Bounds, centred_limits, products_of, weighted_sums
from intonnx.ir.op import Op, OperandTypes, ResultTypes, element_count, register_op
from intonnx.ir.quantization import expand
from intonnx.ir.types import Array, QuantParams


@register_op
class BlockedDense(Op):
    """An activation times a matrix with scales for each block of rows, quantized.

    Operands: `a` [..., K], codes; `b` [K, N], codes with blocks along axis 0. Result: codes
    [..., N] with the parameters `out`. The sum of (a - a_zero_point) * (b - b_zero_point) over each
    block is exact. Each is converted to float32 and multiplied by a.scale * b.scale of its block
    and column, in float32; these are added up in float32, from the first block on, and quantized.
    Source: ONNX MatMul-13 of DequantizeLinear-21 with a block_size.

    Constraints:
        C1: `a` has rank 1 or more and is quantized per tensor, in at most 16 bits.
        C2: `b` has rank 2 and is quantized by blocks along axis 0, in at most 16 bits.
        C3: the last axis of `a` is as long as the first of `b`.
        C4: `out` is per tensor.
    """

    name: ClassVar[str] = "qnn.blocked_dense"
    signature: ClassVar[tuple[str, ...]] = ("a", "b")
    out: QuantParams

    def infer(self, operands: OperandTypes) -> ResultTypes:
        a, b = self.operand(operands, 0), self.operand(operands, 1)
        left, right = self.shape_of(operands, 0, "C1"), self.shape_of(operands, 1, "C2")
        single = a.quant is not None and a.quant.per_tensor and a.dtype.bits <= 16
        self.require(single and bool(left), "C1", f"a is {a.dtype} of rank {len(left)}")
        blocks = b.quant is not None and b.quant.block is not None and b.quant.axis == 0
        fits = blocks and b.dtype.bits <= 16 and len(right) == 2
        self.require(fits, "C2", f"b is {b.dtype} of rank {len(right)}, or not in blocks of rows")
        rows, (shared, *_) = left[:-1], left[-1:]
        same = shared == right[0] or isinstance(shared, str) or isinstance(right[0], str)
        self.require(same, "C3", f"the shared axis has {shared} elements in a, {right[0]} in b")
        self.require(self.out.per_tensor, "C4", "the result is per axis")
        return (self.codes(self.out, (*rows, right[1]), "C4"),)

    def accumulator_bounds(
        self, operands: OperandTypes, constants: Sequence[Array | None]
    ) -> Bounds | None:
        """The bounds of the sum of any one block, for each column."""
        a, b = self.operand(operands, 0), self.operand(operands, 1)
        limits, size, codes = centred_limits(a), b.params.block or 1, constants[1]
        if codes is None:
            return products_of(limits, centred_limits(b), size)
        centred = codes.astype(np.int64) - expand(b.params, codes.shape)[1]
        rows = np.pad(centred, ((0, -len(codes) % size), (0, 0)))
        blocks = rows.reshape(-1, size, codes.shape[1]).swapaxes(0, 1)
        return weighted_sums(limits, blocks.reshape(size, -1)).merged(codes.shape[1])

    def multiply_accumulates(self, operands: OperandTypes, results: ResultTypes) -> int:
        return element_count(results[0].shape) * element_count(self.shape_of(operands, 0)[-1:])
