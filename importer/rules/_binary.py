"""Element-wise operators on two operands between dequantizers and quantizers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from intonnx.importer.node_view import NodeView
from intonnx.importer.qdq.boundary import Boundary
from intonnx.importer.qdq.table import table_of
from intonnx.ir.binary import real_type
from intonnx.ir.graph import Refusal
from intonnx.ir.op import Op
from intonnx.ir.ops.quantize import Quantize
from intonnx.ir.reasons import Code
from intonnx.ir.types import QuantParams, plain

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
    if any(_arrives_as_float(boundary, index) for index in (0, 1)):
        return table_of(boundary)
    if any(_is_float_scalar(boundary, index) for index in (0, 1)):
        served, refusal = _by_table(boundary)
        if served:
            return refusal
    operands = real_operands(boundary)
    if isinstance(operands, Refusal):
        return operands
    if (refusal := _per_axis_result(boundary)) is not None:
        return refusal
    return boundary.produced(make, operands)


def quantize_literal(boundary: Boundary, make: Make) -> Refusal | None:
    """As `quantize_binary`, for operators without a QLinear one: with any scalar it is a table."""
    served, refusal = _by_table(boundary)
    return refusal if served else quantize_binary(boundary, make)


def _by_table(boundary: Boundary) -> tuple[bool, Refusal | None]:
    """Whether every quantizer takes a table now, and the refusal where float readers are left."""
    quantizers = boundary.quantizers()
    refusal = table_of(boundary)
    served = refusal is None or (bool(quantizers) and not boundary.quantizers())
    return served, refusal


def real_operands(boundary: Boundary) -> list[str] | Refusal:
    """The names of two operands that the model has quantized, or one of them made constant.

    They have real values of one type: constants of another type, as the exponent of Pow may be,
    are converted where they keep their values.
    """
    names: list[str] = []
    for index in (0, 1):
        name = _operand(boundary, index)
        if isinstance(name, Refusal):
            return name
        names.append(name)
    types = [boundary.rewriter.types[name] for name in names]
    if real_type(types[0]) is not real_type(types[1]):
        return Refusal(
            code=Code.UNSUPPORTED_TYPE,
            detail=f"'{names[0]}' and '{names[1]}' stand for real values of two types: use one",
        )
    return names


def _is_float_scalar(boundary: Boundary, index: int) -> bool:
    array = boundary.constant(index)
    return array is not None and array.size == 1 and boundary.quantized(index) is None


def _operand(boundary: Boundary, index: int) -> str | Refusal:
    """The codes of an operand, or the float constant that it is."""
    if _arrives_as_float(boundary, index):
        return Refusal(
            code=Code.INPUT_NOT_QUANTIZED,
            detail=f"'{boundary.name(index)}' arrives as float: put a QuantizeLinear and a "
            "DequantizeLinear before it",
        )
    value = boundary.quantized(index)
    if value is None:
        return _real_constant(boundary, index)
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


def _arrives_as_float(boundary: Boundary, index: int) -> bool:
    """Whether an operand has no codes, and is no constant beside one that has."""
    beside = boundary.constant(index) is not None and boundary.quantized(1 - index) is not None
    return boundary.quantized(index) is None and not beside


def _real_constant(boundary: Boundary, index: int) -> str:
    """The constant, in the type of the real values that the other operand stands for."""
    name, real = boundary.name(index), boundary.type(1 - index).dtype
    constant = np.asarray(boundary.constant(index))
    converted = constant.astype(real.numpy)
    if constant.dtype == real.numpy or not np.array_equal(converted, constant):
        return name
    return boundary.constant_codes(f"{name}.{real}", converted, plain(real, converted.shape))


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
        return node.keep_for_parameters()
    operands = [node.codes(node.input(0), a), node.codes(node.input(3), b)]
    node.emit(make(out), operands)
    return None
