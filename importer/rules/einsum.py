"""Einsum."""

from __future__ import annotations

from intonnx.importer.qdq.boundary import Boundary, Quantized
from intonnx.importer.qdq.codes import OnCodes, whole
from intonnx.importer.registry import commutes, quantizes
from intonnx.ir.einsum import Equation
from intonnx.ir.graph import Refusal
from intonnx.ir.ops.einsum import Einsum
from intonnx.ir.ops.transpose import Transpose
from intonnx.ir.reasons import Code
from intonnx.ir.types import QuantParams


@commutes("Einsum")
def einsum_on_codes(
    boundary: Boundary, params: QuantParams | None, exact: bool
) -> OnCodes | Refusal:
    """An equation that only exchanges axes is a transpose."""
    text, rank = boundary.attribute("equation"), boundary.type(0).rank
    if len(boundary.node.operands) == 1 and rank is not None:
        try:
            perm = Equation.of(text, [rank]).permutation
        except ValueError:
            perm = None
        if perm is not None:
            return whole(boundary, params, Transpose(perm=perm))
    return Refusal(code=Code.NO_INTEGER_FORM, detail=f"'{text}' adds up elements")


@quantizes("Einsum")
def quantize_einsum(boundary: Boundary) -> Refusal | None:
    """The sums of one operand, or of the products of two, are an accumulator."""
    count = len(boundary.node.operands)
    if count > 2:
        return Refusal(
            code=Code.UNSUPPORTED_ATTRIBUTE,
            detail=f"{count} operands meet at '{boundary.node.results[0]}': multiply two at a time "
            "and quantize what is in between",
        )
    operands: list[Quantized] = []
    for index in range(count):
        operand = _codes(boundary, index)
        if isinstance(operand, Refusal):
            return operand
        operands.append(operand)
    op = Einsum(equation=boundary.attribute("equation"))
    misfit = boundary.misfit(op, [operand.type for operand in operands])
    if misfit is None:
        names = [operand.name for operand in operands]
        hint = f"{boundary.node.results[0]}.accumulator"
        boundary.accumulated(boundary.emit(op, names, hint))
    return misfit


def _codes(boundary: Boundary, index: int) -> Quantized | Refusal:
    """An operand as codes with one scale, or with one for each index of an axis."""
    value = boundary.quantized(index)
    if value is None or value.params.per_tensor or value.params.storage.bits > 16:
        return boundary.needs_activation(index)
    return value
