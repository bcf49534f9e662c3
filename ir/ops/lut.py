"""A table of results: any function of one element, by its code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from intonnx.ir.op import Op, OperandTypes, ResultTypes, register_op
from intonnx.ir.ops.onnx_op import Attribute
from intonnx.ir.types import DType, QuantParams, quantized


class FloatStep(NamedTuple):
    """One float operator of a recipe.

    Attributes:
        op_type: an element-wise operator of ai.onnx.
        operands: a whole number is a value (0 the real value of the code, n the result of step n),
            a float is a constant, None an absent operand.
        attributes: pairs of name and value; the `to` of a Cast is the spelling of a `DType`.
    """

    op_type: str
    operands: tuple[int | float | None, ...] = (0,)
    attributes: tuple[tuple[str, Attribute], ...] = ()


@register_op
class Lut(Op):
    """The entry of a table for every code: exact for any chain of element-wise functions.

    Operands: `x`, codes; `table` [256] for codes of up to 8 bits, [65536] for 16 bits. The entry of
    a code is at its unsigned bit pattern, so -1 finds the last one. Result: entries, codes with the
    parameters `out`, in the shape of `x`. `recipe` says which float operators the table stands for:
    quantize(recipe(dequantize(code))); it is empty when that is not known, and the last step's
    result is the recipe's. Source: ONNX DequantizeLinear-21 and QuantizeLinear-21 around the
    operators of the recipe.

    Constraints:
        C1: `x` is quantized per tensor, in at most 16 bits.
        C2: `table` holds an entry of the storage type of `out` for every bit pattern.
        C3: `out` is per tensor.
        C4: a step of the recipe reads the real value of the code or results of earlier steps.
    """

    name: ClassVar[str] = "qnn.lut"
    signature: ClassVar[tuple[str, ...]] = ("x", "table")
    recipe: tuple[FloatStep, ...] = ()
    out: QuantParams

    def infer(self, operands: OperandTypes) -> ResultTypes:
        x, table = self.operand(operands, 0), self.operand(operands, 1)
        fits = x.quant is not None and x.quant.per_tensor and x.dtype.bits <= 16
        self.require(fits, "C1", f"the operand is {x.dtype}, or not quantized per tensor")
        entries = 256 if x.dtype.bits <= 8 else 65536
        fits = table.dtype is self.out.storage and table.shape == (entries,)
        self.require(fits, "C2", f"a table {table.dtype}{table.shape} for {x.dtype} codes")
        self.require(self.out.per_tensor, "C3", "the result's parameters are not per tensor")
        for index, step in enumerate(self.recipe):
            reads = [operand for operand in step.operands if isinstance(operand, int)]
            known = all(0 <= operand <= index for operand in reads)
            self.require(known, "C4", f"step {index + 1} ({step.op_type}) reads {reads}")
        return (quantized(self.out, x.shape),)


def step_types(recipe: Sequence[FloatStep], expressed: DType) -> list[DType]:
    """The types of the values of a recipe: the real value of the code, then each step's result.

    A result has the type of the first value that the step reads, but that of a Cast its own.
    """
    types = [expressed]
    for step in recipe:
        read = next((operand for operand in step.operands if isinstance(operand, int)), 0)
        target = dict(step.attributes)["to"] if step.op_type == "Cast" else types[read]
        types.append(DType(target))
    return types
