"""Operators whose every result is one of the values given to them: they act on codes.

Q(select(a, b)) = select(Q(a), Q(b)): joining, choosing and scattering look at no value, and a
minimum or maximum only at the order, which a quantizer keeps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from intonnx.importer.fold import evaluate
from intonnx.importer.qdq.boundary import Boundary, Quantized
from intonnx.importer.qdq.codes import keep_plain_readers
from intonnx.ir.graph import Refusal
from intonnx.ir.ops.quantize import Quantize, Requantize
from intonnx.ir.ops.storage_cast import StorageCast
from intonnx.ir.quantization import dequantize_array, quantize_array
from intonnx.ir.reasons import Code
from intonnx.ir.selection import Selection
from intonnx.ir.types import QuantParams, quantized
from intonnx.protos import node_proto

Make = Callable[[QuantParams | None], Selection]


def quantize_selection(boundary: Boundary, data: Sequence[int], make: Make) -> Refusal | None:
    """Let the operator act on the codes of the inputs at the indices `data`.

    They are quantized by the parameters of the result, which is what the model computes. Without a
    quantizer after it, codes with equal parameters are taken as they are. The operator on codes has
    the operands of the float operator, in the same order; `make` makes it.
    """
    selector = _Selector(boundary, tuple(data), make)
    kind = boundary.type(data[0])
    if kind.is_integer:
        return selector.integers()
    if not kind.dtype.is_float:
        return None
    if boundary.quantizers() and not boundary.read_as_float():
        return selector.quantized()
    return selector.equal()


@dataclass(frozen=True)
class _Selector:
    boundary: Boundary
    data: tuple[int, ...]
    make: Make

    def quantized(self) -> Refusal | None:
        """One operator for each quantizer; constants take the parameters of the result now."""
        boundary = self.boundary
        wanted = boundary.quantizer_params()
        if not all(out.per_tensor and out.storage.bits <= 16 for out in wanted):
            return Refusal(
                code=Code.PER_AXIS_INPUT,
                detail=f"'{boundary.node.results[0]}' is quantized with a scale for each channel "
                "or more than 16 bits: quantize it per tensor to 8 or 16 bits",
            )
        codes = {i: quantized(wanted[0], boundary.type(i).shape) for i in self.data}
        kinds = [codes.get(i) or boundary.type(i) for i in range(len(boundary.node.operands))]
        misfit = boundary.misfit(self.make(wanted[0]), kinds)
        if misfit is not None:
            return misfit

        def operands(out: QuantParams) -> list[str]:
            first = {boundary.name(index): index for index in reversed(self.data)}
            made = {name: _operand(boundary, index, out) for name, index in first.items()}
            return self._operands([made[boundary.name(index)] for index in self.data])

        return boundary.produced(self.make, operands)

    def equal(self) -> Refusal | None:
        """No quantizer follows, or not only quantizers: codes with equal parameters need none."""
        boundary = self.boundary
        values: list[Quantized] = []
        for index in self.data:
            if boundary.quantized(index) is None and boundary.constant(index) is not None:
                continue
            value = boundary.needs_activation(index)
            if isinstance(value, Refusal):
                return value
            values.append(value)
        if not values:
            return None
        out = values[0].params
        codes: list[str] = []
        for index in self.data:
            name = _equal_operand(boundary, index, out)
            if name is None:
                return _not_equal(boundary, index, values[0])
            codes.append(name)
        op, operands = self.make(out), self._operands(codes)
        misfit = boundary.misfit(op, [boundary.rewriter.types[name] for name in operands])
        if misfit is not None:
            return misfit
        boundary.moved([_emitted(boundary, op, operands)])
        return None

    def integers(self) -> Refusal | None:
        """Codes that the model moves without a dequantizer, or plain integers of up to 16 bits."""
        boundary = self.boundary
        kinds = [boundary.type(index) for index in self.data]
        if kinds[0].quant is None and kinds[0].dtype.bits > 16:
            # Shape arithmetic on int64 is left to the reference operators: it is no tensor data.
            return None
        params = kinds[0].quant
        same = params is not None and all(kind.quant == params for kind in kinds)
        out = params if same and params is not None and params.per_tensor else None
        op = self.make(out)
        types = [boundary.type(index) for index in range(len(boundary.node.operands))]
        if out is None:
            types = [kind.model_copy(update={"quant": None}) for kind in types]
        misfit = boundary.misfit(op, types)
        if misfit is not None:
            return misfit
        codes = [boundary.name(index) for index in self.data]
        for place, kind in enumerate(kinds):
            if out is None and kind.quant is not None:
                hint = f"{codes[place]}.integers"
                codes[place] = boundary.emit(StorageCast(out=None), [codes[place]], hint)
        node = boundary.rewriter.remove(boundary.node_id)
        boundary.rewriter.emit(op, self._operands(codes), node.results, sources=node.sources,
                               before=boundary.node_id)  # fmt: skip
        keep_plain_readers(boundary.rewriter, node.results[0])
        return None

    def _operands(self, codes: Sequence[str]) -> list[str]:
        """The operands of the operator on codes, from the names of the data."""
        names = list(self.boundary.node.operands)
        for index, name in zip(self.data, codes, strict=True):
            names[index] = name
        return names


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


def _not_equal(boundary: Boundary, index: int, first: Quantized) -> Refusal:
    why = "it has other parameters"
    if boundary.quantized(index) is None:
        why = "it is no multiple of the scale"
    refusal = boundary.needs_quantizers()
    assert refusal is not None
    return Refusal(
        code=refusal.code,
        detail=f"'{boundary.name(index)}' cannot join '{first.name}' as codes, "
        f"{why}, and {refusal.detail}",
    )


def _emitted(boundary: Boundary, op: Selection, operands: list[str]) -> str:
    """The result on codes: an operator, or a constant where every operand is one."""
    hint = f"{boundary.node.results[0]}.codes"
    constants = boundary.rewriter.constants
    if op.out is not None and all(name in constants for name in operands):
        inputs = {
            name: constants[codes]
            for name, codes in zip(boundary.node.operands, operands, strict=True)
        }
        opsets = {boundary.op.domain: boundary.op.version}
        results = evaluate(node_proto(boundary.node), inputs, opsets)
        if results is not None:
            return boundary.constant_codes(hint, results[0], quantized(op.out, results[0].shape))
    return boundary.emit(op, operands, hint)
