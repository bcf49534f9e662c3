"""Element-wise operators on two operands between dequantizers and quantizers."""

from __future__ import annotations

from collections.abc import Callable

from intonnx.importer.node_view import NodeView
from intonnx.ir.graph import Refusal
from intonnx.ir.op import Op
from intonnx.ir.ops.quantize import Quantize
from intonnx.ir.reasons import Code
from intonnx.ir.types import QuantParams

from .boundary import Boundary

Make = Callable[[QuantParams], Op]


def quantize_binary(boundary: Boundary, make: Make) -> Refusal | None:
    """Let an operator act on the codes of its two operands, which broadcast.

    An operand may be a float constant as long as the other one is quantized: it stays float, since
    the model never quantized it. Accumulators and per-axis operands are dequantized literally.
    """
    if boundary.op.version < 7 and boundary.attribute("broadcast", 0):
        return Refusal(
            code=Code.UNSUPPORTED_ATTRIBUTE,
            detail=f"'{boundary.node.results[0]}' broadcasts as before opset 7: convert the model "
            "to opset 13 or newer",
        )
    operands = [_operand(boundary, index) for index in (0, 1)]
    for found in operands:
        if isinstance(found, Refusal):
            return found
    if (refusal := _per_axis_result(boundary)) is not None:
        return refusal
    return boundary.produced(make, [str(name) for name in operands])


def _operand(boundary: Boundary, index: int) -> str | Refusal:
    value, name = boundary.quantized(index), boundary.name(index)
    if value is None:
        other = boundary.quantized(1 - index)
        if boundary.constant(index) is not None and other is not None:
            return name
        what = "" if other is None else ", or make it a constant"
        return Refusal(
            code=Code.INPUT_NOT_QUANTIZED,
            detail=f"'{name}' arrives as float: put a QuantizeLinear and a DequantizeLinear before "
            f"it{what}",
        )
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
