"""Matrix products: of an activation and a matrix, and of batches of matrices."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import ClassVar

from intonnx.ir.bounds import Bounds, product_bounds
from intonnx.ir.broadcast import broadcasts_to
from intonnx.ir.op import (
    Op,
    OperandTypes,
    ResultTypes,
    element_count,
    optional_operand,
    register_op,
)
from intonnx.ir.types import (
    UNKNOWN_DIM,
    Array,
    Dim,
    DType,
    TensorType,
    accumulator,
    plain,
    quantized,
)

from .conv import product_scale


class MatrixProduct(Op):
    """The exact int32 sum of (a - a_zero_point) * (b - b_zero_point) over a shared axis, plus bias.

    Two forms: `a` and `b` quantized, then the zero points are those of the types and the result is
    i32 with the scale a.scale * b.scale, per last axis when `b` is per column; or `a` and `b` plain
    integers with zero points as operands (0 when absent), and the result is plain i32.
    """

    signature: ClassVar[tuple[str, ...]] = (
        "a",
        "b",
        "bias?",
        "a_zero_point?",
        "b_zero_point?",
    )

    def infer(self, operands: OperandTypes) -> ResultTypes:
        a, b = self.operand(operands, 0), self.operand(operands, 1)
        sides = self.shape_of(operands, 0, "C1"), self.shape_of(operands, 1, "C1")
        shape = self._result_shape(*sides)
        self._check_bias(optional_operand(operands, 2), shape)
        self.require((a.quant is None) == (b.quant is None), "C3", "only one operand is quantized")
        if a.quant is None:
            self.require(a.is_integer and b.is_integer, "C3", f"operands are {a.dtype}, {b.dtype}")
            return (plain(DType.I32, shape),)
        self.require(a.quant.per_tensor, "C3", "a is quantized per axis")
        self.require(
            all(kind is None for kind in operands[3:]), "C6", "zero points are given twice"
        )
        # A vector has no columns, so only one scale will do.
        columns = (b.rank or 0) - 1
        self.require(b.params.per_tensor or columns > 0, "C3", "the vector b is quantized per axis")
        scale = product_scale(self, a, b, columns)
        axis = len(shape) - 1 if scale.ndim else None
        return (quantized(accumulator(scale, axis, expressed=a.quant.expressed), shape),)

    def multiply_accumulates(self, operands: OperandTypes, results: ResultTypes) -> int:
        return element_count(results[0].shape) * element_count(self.shape_of(operands, 0)[-1:])

    def accumulator_bounds(
        self, operands: OperandTypes, constants: Sequence[Array | None]
    ) -> Bounds | None:
        rank = len(self.shape_of(operands, 1))
        return product_bounds(operands, constants, [max(rank - 2, 0)], rank - 1)

    def _result_shape(self, a: Sequence[Dim], b: Sequence[Dim]) -> tuple[Dim, ...]:
        raise TypeError(f"{type(self).__name__} has no shape rule")

    def _check_shared(self, a: Dim, b: Dim) -> None:
        same = a == b or isinstance(a, str) or isinstance(b, str)
        self.require(same, "C2", f"the shared axis has {a} elements in a, {b} in b")

    def _check_bias(self, bias: TensorType | None, shape: Sequence[Dim]) -> None:
        if bias is None:
            return
        self.require(bias.dtype is DType.I32, "C5", f"the bias is {bias.dtype}, not i32")
        fits = broadcasts_to(bias.shape, shape)
        self.require(fits, "C5", f"the bias of shape {bias.shape} does not broadcast to {shape}")


@register_op
class Dense(MatrixProduct):
    """An activation times a matrix, exact in int32, plus a bias.

    Operands: `a` [..., K]; `b` [K, N]; `bias` i32, optional, [N] or any shape that broadcasts to
    the result; `a_zero_point` [], [M] or [..., M, 1] and `b_zero_point` [] or [N], optional,
    integers. Result: i32 [..., N].
    Two forms: `a` and `b` quantized, then the zero points are those of the types, the bias has the
    accumulator's scale, and the result's scale is a.scale * b.scale (per last axis when `b` is per
    axis 1); or `a` and `b` plain integers with zero points as operands (0 when absent), and the
    result is plain i32. Source: ONNX QLinearMatMul-21, MatMulInteger-10; com.microsoft QGemm-1.

    Constraints:
        C1: `a` has rank 1 or more, `b` rank 2.
        C2: the last axis of `a` is as long as the first of `b`.
        C3: `a` is quantized per tensor, `b` per tensor or per axis 1; both or neither.
        C4: the product of the scales is a finite float32 above zero.
        C5: `bias` is i32 and broadcasts to the result.
        C6: zero points are operands only in the plain form.
    """

    name: ClassVar[str] = "qnn.dense"

    def _result_shape(self, a: Sequence[Dim], b: Sequence[Dim]) -> tuple[Dim, ...]:
        self.require(len(a) >= 1 and len(b) == 2, "C1", f"ranks are {len(a)}, {len(b)}")
        self._check_shared(a[-1], b[0])
        return (*a[:-1], b[1])


@register_op
class BatchMatMul(MatrixProduct):
    """Matrices times matrices, batches broadcast, exact in int32, plus a bias.

    Operands: `a` [..., M, K] or [K]; `b` [..., K, N] or [K]; `bias` i32, optional, of a shape that
    broadcasts to the result; `a_zero_point` [], [M] or [..., M, 1] and `b_zero_point` [], [N] or
    [..., 1, N], optional, integers. Result: i32 [..., M, N], without M or N where an operand is a
    vector. The two forms are those of `qnn.dense`; b.scale may be per last axis.
    Source: ONNX MatMul-13, QLinearMatMul-21, MatMulInteger-10.

    Constraints:
        C1: `a` and `b` have rank 1 or more, and their leading axes broadcast.
        C2: the shared axis has one length.
        C3: `a` is quantized per tensor, `b` per tensor or per last axis; both or neither.
        C4: the product of the scales is a finite float32 above zero.
        C5: `bias` is i32 and broadcasts to the result.
        C6: zero points are operands only in the plain form.
    """

    name: ClassVar[str] = "qnn.batch_matmul"

    def _result_shape(self, a: Sequence[Dim], b: Sequence[Dim]) -> tuple[Dim, ...]:
        self.require(len(a) >= 1 and len(b) >= 1, "C1", f"ranks are {len(a)}, {len(b)}")
        self._check_shared(a[-1], b[-2] if len(b) > 1 else b[0])
        rows, columns = tuple(a[-2:-1]), tuple(b[-1:]) if len(b) > 1 else ()
        batches = zip_longest(reversed(a[:-2]), reversed(b[:-2]), fillvalue=1)
        lead = [self._broadcast(x, y) for x, y in batches]
        return (*reversed(lead), *rows, *columns)

    def _broadcast(self, a: Dim, b: Dim) -> Dim:
        if a == b or b == 1:
            return a
        if a == 1:
            return b
        if isinstance(a, int) and isinstance(b, int):
            self.require(False, "C1", f"batches of {a} and of {b} do not broadcast")
        # A size above 1 wins over a symbol, which is that size or 1.
        sizes = [size for size in (a, b) if isinstance(size, int)]
        return sizes[0] if sizes else UNKNOWN_DIM
