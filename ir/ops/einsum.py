"""Sums of products over named axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from intonnx.ir.bounds import Bounds, centred_limits, products_of, sums_of
from intonnx.ir.einsum import Equation
from intonnx.ir.op import (
    Op,
    OperandTypes,
    ResultTypes,
    element_count,
    optional_operand,
    register_op,
)
from intonnx.ir.types import Array, Dim, TensorType, accumulator, quantized, static_shape


@register_op
class Einsum(Op):
    """The exact sums of (a - zero_point), or of its products with (b - zero_point).

    Operands: `a` and, for an equation of two terms, `b`, codes. Result: an i32 accumulator with the
    scale of `a` or the product of both scales, per axis where that of one operand is; sums that
    need more than 32 bits are computed wider. Source: ONNX Einsum-12.

    Attributes:
        equation: a letter for every axis, as ONNX writes it; what the result lacks is summed over.

    Constraints:
        C1: the operands are quantized in at most 16 bits, not blocked; one of them may be per axis,
            along an axis that the result and no other operand has.
        C2: `equation` names the axes of the operands, whose ranks are known.
        C3: equal letters stand for axes of one size, or of size 1.
        C4: the product of the scales is a finite float32 above zero.
    """

    name: ClassVar[str] = "qnn.einsum"
    signature: ClassVar[tuple[str, ...]] = ("a", "b?")
    equation: str

    def infer(self, operands: OperandTypes) -> ResultTypes:
        a, b = self.operand(operands, 0), optional_operand(operands, 1)
        kinds = [a] if b is None else [a, b]
        equation = self.expanded(kinds)
        sizes = self.sizes(equation, kinds)
        axes = [self._result_axis(equation, index, kind) for index, kind in enumerate(kinds)]
        named = [axis for axis in axes if axis is not None]
        self.require(len(named) <= 1, "C1", "both operands are quantized per axis")
        params = accumulator(
            self._scale(kinds), named[0] if named else None, expressed=a.params.expressed
        )
        return (quantized(params, [sizes[letter] for letter in equation.result]),)

    def multiply_accumulates(self, operands: OperandTypes, results: ResultTypes) -> int:
        kinds = [kind for kind in operands if kind is not None]
        sizes = self.sizes(self.expanded(kinds), kinds)
        return element_count(tuple(sizes.values())) if len(kinds) > 1 else 0

    def accumulator_bounds(
        self, operands: OperandTypes, constants: Sequence[Array | None]
    ) -> Bounds | None:
        kinds = [kind for kind in operands if kind is not None]
        equation = self.expanded(kinds)
        sizes = self.sizes(equation, kinds)
        summed = static_shape([sizes[letter] for letter in equation.summed])
        if summed is None:
            return None
        if len(kinds) == 1:
            return sums_of(kinds[0], math.prod(summed))
        a, b = (centred_limits(kind) for kind in kinds)
        return products_of(a, b, math.prod(summed))

    def expanded(self, kinds: list[TensorType]) -> Equation:
        """The equation for operands of these types. Raises TypeFailure C2 when it does not fit."""
        ranks = [len(self.shape_of(kinds, index, "C2")) for index in range(len(kinds))]
        try:
            return Equation.of(self.equation, ranks)
        except ValueError as error:
            self.require(False, "C2", f"'{self.equation}': {error}")
            raise

    def sizes(self, equation: Equation, kinds: list[TensorType]) -> dict[str, Dim]:
        """The size of each letter. Raises TypeFailure C3 where two sizes differ."""
        try:
            return equation.sizes([kind.shape or () for kind in kinds])
        except ValueError as error:
            self.require(False, "C3", str(error))
            raise

    def _result_axis(self, equation: Equation, index: int, kind: TensorType) -> int | None:
        fits = kind.quant is not None and kind.dtype.bits <= 16 and kind.quant.block is None
        self.require(fits, "C1", f"operand {index} is {kind.dtype}, not quantized, or blocked")
        axis = kind.params.axis
        if axis is None:
            return None
        letter = equation.operands[index][axis]
        alone = "".join(equation.operands).count(letter) == 1 and letter in equation.result
        self.require(alone, "C1", f"operand {index} is per axis {axis}, which is summed or shared")
        return equation.result.index(letter)

    def _scale(self, kinds: list[TensorType]) -> Array:
        with np.errstate(over="ignore", under="ignore"):
            scale = np.asarray(
                math.prod((kind.params.scale for kind in kinds), start=np.float32(1))
            )
        valid = bool(np.all(np.isfinite(scale)) and np.all(scale > 0))
        self.require(valid, "C4", "the product of the scales leaves the range of float32")
        return scale
