"""Element-wise operators on two operands between dequantizers and quantizers."""

from __future__ import annotations

from collections.abc import Callable

from intonnx.importer.node_view import NodeView
from intonnx.importer.qdq.boundary import Boundary
from intonnx.importer.qdq.table import table_of
from intonnx.ir.graph import Refusal
from intonnx.ir.op import Op
from intonnx.ir.ops.quantize import Quantize
from intonnx.ir.reasons import Code
from intonnx.ir.types import QuantParams

Make = Callable[[QuantParams], Op]


def quantize_binary(boundary: Boundary, make: Make) -> Refusal | None:
    """Let an operator act on the codes of its two operands, which broadcast.

    An operand may be a float constant as long as the other one is quantized: it stays float, since
    the model never quantized it. Accumulators and per-axis operands are dequantized literally.
    Where all comes from one tensor, through float operators and scalars, it is a table.
    """
    if boundary.op.version < 7 and boundary.attribute("broadcast", 0):
        return Refusal(
            code=Code.UNSUPPORTED_ATTRIBUTE,
            detail=f"'{boundary.node.results[0]}' broadcasts as before opset 7: convert the model "
            "to opset 13 or newer",
        )
    operands = [_operand(boundary, index) for index in (0, 1)]
    refusals = [found for found in operands if isinstance(found, Refusal)]
    if refusals and refusals[0].code != Code.INPUT_NOT_QUANTIZED:
        return refusals[0]
    if refusals or any(_is_float_scalar(boundary, index) for index in (0, 1)):
        refusal = table_of(boundary)
        if refusals or refusal is None or refusal.code == Code.FLOAT_RESULT_USED:
            return refusal
    if (refusal := _per_axis_result(boundary)) is not None:
        return refusal
    return boundary.produced(make, [str(name) for name in operands])


def _is_float_scalar(boundary: Boundary, index: int) -> bool:
    array = boundary.constant(index)
    return array is not None and array.size == 1 and boundary.quantized(index) is None


def _operand(boundary: Boundary, index: int) -> str | Refusal:
    """The codes of an operand, or the float constant that it is."""
    value, name = boundary.quantized(index), boundary.name(index)
    if value is None:
        if boundary.constant(index) is not None and boundary.quantized(1 - index) is not None:
            return name
        return Refusal(code=Code.INPUT_NOT_QUANTIZED, detail=f"'{name}' arrives as float")
    if value.params.block is not None:
        return Refusal(
            code=Code.BLOCKED_INPUT,
            detail=f"'{value.name}' has a scale for each block of {value.params.block}: quantize "
            "it per tensor",
        )
    if value.params.storage.bits > 32:
        return Refusal(
            code=Code.UNSUPPORTED_TYPE,
            detail=f"'{value.name}' holds {value.params.storage} codes: requantize it first",
        )
    return value.name


def _per_axis_result(boundary: Boundary) -> Refusal | None:
    for node_id in boundary.quantizers():
        quantizer = boundary.rewriter.node(node_id)
        assert isinstance(quantizer.op, Quantize)
        if not quantizer.op.out.per_tensor:
            return Refusal(
                code=Code.PER_AXIS_INPUT,
                detail=f"'{quantizer.results[0]}' has a scale for each index of axis "
                f"{quantizer.op.out.axis}: quantize it per tensor",
            )
    return None


def import_qlinear_binary(node: NodeView, make: Make) -> None:
    """QLinearAdd and its like: A, A_scale, A_zero_point, then those of B; C_scale, C_zero_point."""
    storages = [node.type(0).dtype, node.type(3).dtype, node.type(0).dtype]
    params = [
        node.params(index, index + 1, storage, rank=None, axis=None)
        for index, storage in zip((1, 4, 6), storages, strict=True)
    ]
    a, b, out = params
    if a is None or b is None or out is None:
        return node.keep(
            Refusal(
                code=Code.RUNTIME_PARAMETERS,
                detail=f"a scale or zero point of {node.label} is computed at run time",
            )
        )
    operands = [node.codes(node.input(0), a), node.codes(node.input(3), b)]
    node.emit(make(out), operands)
    return None
