"""Float operators that together are one function of one code: what a table can stand for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from intonnx.importer.float_functions import FUNCTIONS
from intonnx.ir.graph import Refusal, Source
from intonnx.ir.ops.lut import FloatStep, step_types
from intonnx.ir.ops.onnx_op import OnnxOp
from intonnx.ir.ops.storage_cast import StorageCast
from intonnx.ir.quantization import all_codes, dequantize_array, quantize_array
from intonnx.ir.reasons import Code
from intonnx.ir.rewriter import NodeId, Rewriter
from intonnx.ir.types import Array, DType, QuantParams

from .boundary import Boundary, Quantized

MAX_STEPS = 64
"""Longer chains are left alone: every operator of a chain looks at all those before it."""

_STEP_TYPES = (DType.F32, DType.F16, DType.BF16)
"""What float32 arithmetic can stand for: its results are rounded to these."""


@dataclass(frozen=True)
class Recipe:
    """A function of one quantized tensor.

    Attributes:
        x: the tensor.
        steps: the float operators; the last one's result is the function's.
        sources: the nodes of the imported model that the steps stand for.
    """

    x: Quantized
    steps: tuple[FloatStep, ...]
    sources: tuple[Source, ...]

    def table(self, out: QuantParams) -> Array:
        """The code of the result for every code of the tensor, at its unsigned bit pattern."""
        return table_for(self.steps, self.x.params, out)


def table_for(steps: Sequence[FloatStep], x: QuantParams, out: QuantParams) -> Array:
    """quantize(steps(dequantize(code))) for every code of `x`, in the storage type of `out`.

    Every step is rounded to its type, that of `x` as long as nothing casts it.
    """
    types = step_types(steps, x.expressed)
    values = [dequantize_array(all_codes(x), x).astype(np.float32)]
    for step, kind in zip(steps, types[1:], strict=True):
        operands = [
            values[operand]
            if isinstance(operand, int)
            else None
            if operand is None
            else np.float32(operand)
            for operand in step.operands
        ]
        with np.errstate(all="ignore"):
            result = FUNCTIONS[step.op_type].function(operands, dict(step.attributes))
            values.append(np.asarray(result).astype(kind.numpy).astype(np.float32))
    return quantize_array(values[-1], out)


def recipe_of(boundary: Boundary) -> Recipe | Refusal:
    """The recipe of the operator's result, or why it is no function of one quantized tensor.

    The walk goes backwards over element-wise operators and scalar constants, through diamonds such
    as x * sigmoid(x) too, until it comes to the one tensor that everything is made from.
    """
    walk = _Walk(boundary.rewriter, boundary.node_id)
    refusal = walk.visit(boundary)
    return walk.finish(boundary) if refusal is None else refusal


class _Walk:
    def __init__(self, rewriter: Rewriter, last_id: NodeId) -> None:
        self._rewriter = rewriter
        self._last_id = last_id
        self._x: Quantized | None = None
        self._steps: list[FloatStep] = []
        self._sources: dict[Source, None] = {}
        self._places: dict[str, int] = {}
        self._constant_rank = 0

    def visit(self, boundary: Boundary) -> Refusal | None:
        """Add the steps of an operator's operands, then its own."""
        op, node = boundary.op, boundary.node
        function = FUNCTIONS.get(op.op_type)
        if function is None or len(node.results) != 1:
            return _not_quantized(node.results[0])
        # A Cast to float64 loses nothing, but arithmetic in float64 is another than in float32.
        result = boundary.result_type.dtype
        if result not in _STEP_TYPES and (op.op_type != "Cast" or result is not DType.F64):
            return _unsupported(node.results[0], result)
        operands: list[int | float | None] = []
        # No table holds what an inner operator makes of an array, whatever its other operand is.
        if boundary.node_id != self._last_id and any(map(self._is_array, node.operands)):
            return _not_quantized(node.results[0])
        for index in range(len(node.operands)):
            operand = self._operand(boundary, index)
            if isinstance(operand, Refusal):
                return operand
            operands.append(operand)
        attributes = dict(op.attributes)
        if op.op_type == "Clip" and op.version < 11:
            operands += [_bound(attributes, "min"), _bound(attributes, "max")]
        if not function.fewest <= len(operands) <= function.most:
            return _not_quantized(node.results[0])
        if op.op_type == "Cast":
            attributes = {"to": boundary.result_type.dtype.value}
        self._steps.append(FloatStep(op.op_type, tuple(operands), tuple(attributes.items())))
        self._places[node.results[0]] = len(self._steps)
        self._sources.update(dict.fromkeys(node.sources))
        return None

    def finish(self, boundary: Boundary) -> Recipe | Refusal:
        """The recipe, when everything was found."""
        if self._x is None:
            return Refusal(
                code=Code.NO_INTEGER_FORM,
                detail=f"'{boundary.node.results[0]}' is made from scalar constants only",
            )
        if self._constant_rank > (self._x.type.rank or 0):
            return Refusal(
                code=Code.UNSUPPORTED_ATTRIBUTE,
                detail=f"a constant of rank {self._constant_rank} widens the shape of "
                f"'{self._x.name}': give it as a scalar",
            )
        return Recipe(self._x, tuple(self._steps), tuple(self._sources))

    def _operand(self, boundary: Boundary, index: int) -> float | Refusal | None:
        if not boundary.has(index):
            return None
        name = boundary.name(index)
        if name in self._places:
            return self._places[name]
        constant = boundary.constant(index)
        if constant is not None and constant.size == 1:
            self._constant_rank = max(self._constant_rank, constant.ndim)
            return float(constant.reshape(())[()])
        if self._is_array(name):
            return _beside_array(boundary, name)
        if boundary.quantized(index) is not None:
            return self._tensor(boundary, index)
        inner_id = self._rewriter.producer_id(name)
        if inner_id is None or not _is_element_wise(self._rewriter, inner_id):
            return _not_quantized(name)
        if len(self._places) >= MAX_STEPS:
            return Refusal(
                code=Code.NO_INTEGER_FORM,
                detail=f"'{name}' ends a chain of more than {MAX_STEPS} float operators: quantize "
                "a value within it",
            )
        # The depth of this recursion is bounded: a step is placed only when it returns.
        self._places[name] = -1
        refusal = self.visit(Boundary(self._rewriter, inner_id))
        return refusal if refusal is not None else self._places[name]

    def _is_array(self, name: str) -> bool:
        constant = self._rewriter.constants.get(name)
        return constant is not None and constant.size != 1

    def _tensor(self, boundary: Boundary, index: int) -> int | Refusal:
        found = boundary.needs_activation(index)
        if isinstance(found, Refusal):
            return found
        if found.params.expressed not in (DType.F32, DType.F16):
            return _unsupported(boundary.name(index), found.params.expressed)
        if self._x is None:
            self._x = found
        elif self._identity(self._x) != self._identity(found):
            if boundary.node_id == self._last_id:
                return Refusal(
                    code=Code.NO_INTEGER_FORM,
                    detail=f"{boundary.op.op_type} of '{self._x.name}' and '{found.name}' has no "
                    "integer form: one of them must be a scalar constant",
                )
            return Refusal(
                code=Code.INPUT_NOT_QUANTIZED,
                detail=f"'{self._x.name}' and '{found.name}' meet in float operators: put a "
                "QuantizeLinear and a DequantizeLinear after the operator that joins them",
            )
        return 0

    def _identity(self, x: Quantized) -> tuple[str, QuantParams]:
        """What the codes are, whichever DequantizeLinear gave them their parameters."""
        producer = self._rewriter.producer(x.name)
        cast = producer is not None and isinstance(producer.op, StorageCast)
        return (producer.operands[0] if cast and producer else x.name), x.params


def _bound(attributes: dict[str, object], name: str) -> float | None:
    value = attributes.pop(name, None)
    return value if isinstance(value, float) else None


def _is_element_wise(rewriter: Rewriter, node_id: NodeId) -> bool:
    op = rewriter.node(node_id).op
    return isinstance(op, OnnxOp) and op.domain == "" and op.op_type in FUNCTIONS


def _beside_array(boundary: Boundary, array: str) -> Refusal:
    """Why an operator on a constant of several elements is no table: what meets it is float."""
    for index in range(len(boundary.node.operands)):
        real = boundary.has(index) and boundary.constant(index) is None
        if real and boundary.quantized(index) is None:
            return _not_quantized(boundary.name(index))
    return Refusal(
        code=Code.UNSUPPORTED_ATTRIBUTE,
        detail=f"the constant '{array}' has several elements: a table serves a scalar only",
    )


def _not_quantized(name: str) -> Refusal:
    return Refusal(
        code=Code.INPUT_NOT_QUANTIZED,
        detail=f"'{name}' arrives as float: put a QuantizeLinear and a DequantizeLinear after it",
    )


def _unsupported(name: str, kind: DType) -> Refusal:
    return Refusal(code=Code.UNSUPPORTED_TYPE, detail=f"'{name}' is {kind}: use float32 or float16")
