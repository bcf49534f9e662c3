"""Concat and QLinearConcat."""

from __future__ import annotations

import numpy as np

from intonnx.importer.node_view import NodeView
from intonnx.importer.qdq.boundary import Boundary, Quantized
from intonnx.importer.registry import imports, quantizes
from intonnx.ir.errors import ModelFailure
from intonnx.ir.graph import Refusal
from intonnx.ir.ops.concatenate import Concatenate
from intonnx.ir.ops.quantize import Quantize, Requantize
from intonnx.ir.ops.storage_cast import StorageCast
from intonnx.ir.quantization import dequantize_array, quantize_array
from intonnx.ir.reasons import Code
from intonnx.ir.types import QuantParams, TensorType, quantized


@quantizes("Concat", lifts=True)
def quantize_concat(boundary: Boundary) -> Refusal | None:
    """Every input is quantized by the parameters of the result, which is what the model computes.

    Without a quantizer after it, codes with equal parameters are joined as they are.
    """
    kinds = [boundary.type(i) for i in range(len(boundary.node.operands))]
    shape = boundary.result_type.shape or next((k.shape for k in kinds if k.shape), None)
    axis = int(boundary.attribute("axis", 1))
    if shape is None and axis < 0:
        return Refusal(
            code=Code.UNSUPPORTED_ATTRIBUTE,
            detail=f"axis {axis} of '{boundary.name(0)}', whose rank is not known: count it from "
            "the front",
        )
    axis = axis + len(shape) if shape is not None and axis < 0 else axis
    if kinds[0].is_integer:
        return _integers(boundary, kinds, axis)
    if not kinds[0].dtype.is_float:
        return None
    if boundary.quantizers() and not boundary.read_as_float():
        return _quantized(boundary, kinds, axis)
    return _equal(boundary, axis)


def _quantized(boundary: Boundary, kinds: list[TensorType], axis: int) -> Refusal | None:
    """One concatenate for each quantizer; constants take the parameters of the result now."""
    wanted = boundary.quantizer_params()
    if not all(out.per_tensor and out.storage.bits <= 16 for out in wanted):
        return Refusal(
            code=Code.PER_AXIS_INPUT,
            detail=f"'{boundary.node.results[0]}' is quantized with a scale for each channel or "
            "more than 16 bits: quantize it per tensor to 8 or 16 bits",
        )
    codes = [quantized(wanted[0], kind.shape) for kind in kinds]
    misfit = boundary.misfit(Concatenate(axis=axis, out=wanted[0]), codes)
    if misfit is not None:
        return misfit

    def operands(out: QuantParams) -> list[str]:
        names = dict(zip(boundary.node.operands, range(len(kinds)), strict=True))
        made = {name: _operand(boundary, index, out) for name, index in names.items()}
        return [made[name] for name in boundary.node.operands]

    return boundary.produced(lambda out: Concatenate(axis=axis, out=out), operands)


def _operand(boundary: Boundary, index: int, out: QuantParams) -> str:
    """The codes of an input: as they arrive, or with the parameters of the result."""
    value, real = boundary.quantized(index), boundary.constant(index)
    if real is not None:
        if value is not None and value.params == out:
            return value.name
        kind = quantized(out, real.shape)
        name = f"{boundary.name(index)}.quantized"
        return boundary.constant_codes(name, quantize_array(real, out), kind)
    hint = f"{boundary.name(index)}.quantized"
    if value is None:
        # What made this float will be offered to its rule with a quantizer right behind it.
        return boundary.emit(Quantize(out=out), [boundary.name(index)], hint)
    if value.params.per_tensor and value.params.storage.bits <= 16:
        return value.name
    return boundary.emit(Requantize(out=out), [value.name], hint)


def _equal(boundary: Boundary, axis: int) -> Refusal | None:
    """No quantizer follows, or not only quantizers: codes with equal parameters need none."""
    values: list[Quantized] = []
    for index in range(len(boundary.node.operands)):
        if boundary.quantized(index) is None and boundary.constant(index) is not None:
            continue
        value = boundary.needs_activation(index)
        if isinstance(value, Refusal):
            return value
        values.append(value)
    if not values:
        return None
    out = values[0].params
    names: list[str] = []
    for index in range(len(boundary.node.operands)):
        name = _equal_operand(boundary, index, out)
        if name is None:
            why = "it is no multiple of the scale" if boundary.quantized(index) is None else (
                "it has other parameters"
            )  # fmt: skip
            refusal = boundary.needs_quantizers()
            assert refusal is not None
            return Refusal(
                code=refusal.code,
                detail=f"'{boundary.name(index)}' cannot join '{values[0].name}' as codes, "
                f"{why}, and {refusal.detail}",
            )
        names.append(name)
    op = Concatenate(axis=axis, out=out)
    misfit = boundary.misfit(op, [boundary.rewriter.types[name] for name in names])
    if misfit is not None:
        return misfit
    boundary.moved([_joined(boundary, op, names)])
    return None


def _equal_operand(boundary: Boundary, index: int, out: QuantParams) -> str | None:
    """The codes of an input when they have these parameters or a constant is on their grid."""
    value = boundary.quantized(index)
    if value is not None:
        return value.name if value.params == out else None
    real = boundary.constant(index)
    assert real is not None
    codes = quantize_array(real, out)
    if not np.array_equal(dequantize_array(codes, out), real):
        return None
    name = f"{boundary.name(index)}.quantized"
    return boundary.constant_codes(name, codes, quantized(out, real.shape))


def _joined(boundary: Boundary, op: Concatenate, names: list[str]) -> str:
    hint = f"{boundary.node.results[0]}.codes"
    arrays = [boundary.rewriter.constants.get(name) for name in names]
    known = [array for array in arrays if array is not None]
    if len(known) < len(arrays) or op.out is None:
        return boundary.emit(op, names, hint)
    joined = np.concatenate(known, op.axis)
    return boundary.constant_codes(hint, joined, quantized(op.out, joined.shape))


def _integers(boundary: Boundary, kinds: list[TensorType], axis: int) -> Refusal | None:
    """Codes that the model joins without a dequantizer, or plain integers of 16 bits or fewer."""
    if kinds[0].quant is None and kinds[0].dtype.bits > 16:
        # Shape arithmetic on int64 is left to the reference operators: it is no tensor data.
        return None
    params = kinds[0].quant
    same = params is not None and all(kind.quant == params for kind in kinds)
    out = params if same and params is not None and params.per_tensor else None
    op = Concatenate(axis=axis, out=out)
    stripped = [
        kind if out is not None else kind.model_copy(update={"quant": None}) for kind in kinds
    ]
    misfit = boundary.misfit(op, stripped)
    if misfit is not None:
        return misfit
    names = list(boundary.node.operands)
    for index, kind in enumerate(kinds):
        if out is None and kind.quant is not None:
            hint = f"{names[index]}.integers"
            names[index] = boundary.emit(StorageCast(out=None), [names[index]], hint)
    node = boundary.rewriter.remove(boundary.node_id)
    boundary.rewriter.emit(op, names, node.results, sources=node.sources, before=boundary.node_id)
    return None


@imports("QLinearConcat", since=1, domain="com.microsoft")
def qlinear_concat(node: NodeView) -> None:
    """QLinearConcat: y_scale, y_zero_point, then x, x_scale, x_zero_point for each input."""
    storage = node.type(1).dtype
    out = node.params(0, 1, storage, rank=None, axis=None)
    operands: list[str] = []
    for index in range(2, len(node.proto.input), 3):
        x_params = node.params(index + 1, index + 2, node.type(index).dtype, rank=None, axis=None)
        if out is None or x_params is None:
            return node.keep(
                Refusal(
                    code=Code.RUNTIME_PARAMETERS,
                    detail=f"a scale or zero point of {node.label} is computed at run time",
                )
            )
        operands.append(node.codes(node.input(index), x_params))
    if out is None or not operands:
        raise ModelFailure("there is nothing to join")
    axis, rank = int(node.attribute("axis", 0)), node.type(2).rank
    if rank is None and axis < 0:
        raise ModelFailure(f"axis {axis} of '{node.input(2)}', whose rank is not known")
    if len(operands) == 1:
        node.emit(Requantize(out=out), operands)
    else:
        node.emit(Concatenate(axis=axis % rank if rank else axis, out=out), operands)
    return None
