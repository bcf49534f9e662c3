"""Tables: QLinearSigmoid, QLinearLeakyRelu, a look-up, or the float operators of the recipe."""

from __future__ import annotations

import numpy as np
import onnx

from intonnx.ir.errors import ExportFailure
from intonnx.ir.graph import Node
from intonnx.ir.ops.lut import Lut, step_types
from intonnx.ir.types import DType
from intonnx.protos import element_of_dtype

from ._table import look_up
from .emitter import CONTRIB, Emitter
from .registry import emitters

_QLINEAR = {"Sigmoid": "QLinearSigmoid", "LeakyRelu": "QLinearLeakyRelu"}


@emitters.register(Lut)
def lut(op: Lut, node: Node, out: Emitter) -> None:
    """A QLinear operator makes the same table; a look-up in the table itself is exact as well."""
    known = bool(op.recipe) and all(
        onnx.defs.has(step.op_type, max_inclusive_version=out.opset) for step in op.recipe
    )
    gathers = op.out.storage.bits >= 8
    if not known and not gathers:
        raise ExportFailure(f"a table of {op.out.storage} codes whose float operators are unknown")
    if _is_qlinear(op, node, out):
        _qlinear(op, node, out)
    elif gathers and (out.qlinear or not known):
        _gather(op, node, out)
    else:
        _recipe(op, node, out)


def _is_qlinear(op: Lut, node: Node, out: Emitter) -> bool:
    x = out.params(node.operands[0])
    return (
        out.contrib
        and len(op.recipe) == 1
        and op.recipe[0].op_type in _QLINEAR
        and op.out.storage is x.storage
        and x.storage in (DType.U8, DType.I8)
        and x.expressed is op.out.expressed is DType.F32
        and (op.out.low, op.out.high) == (None, None)
    )


def _qlinear(op: Lut, node: Node, out: Emitter) -> None:
    inputs = [*out.quantized_operand(node.operands[0]), *out.quantization(op.out)]
    step = op.recipe[0]
    out.node(_QLINEAR[step.op_type], inputs, node.results, domain=CONTRIB, **dict(step.attributes))


def _gather(op: Lut, node: Node, out: Emitter) -> None:
    if op.recipe:
        out.recipes[node.results[0]] = op.recipe
    codes, table = (out.operand(name) for name in node.operands)
    look_up(codes, out.type(node.operands[0]), table, node.results[0], out)


def _recipe(op: Lut, node: Node, out: Emitter) -> None:
    result = node.results[0]
    values = [out.real(node.operands[0])]
    types = step_types(op.recipe, out.params(node.operands[0]).expressed)
    for step, kind in zip(op.recipe, types[1:], strict=True):
        inputs = [_input(operand, values, kind, out) for operand in step.operands]
        attributes = dict(step.attributes)
        if step.op_type == "Cast":
            attributes["to"] = element_of_dtype(kind)
        hint = f"{result}.{step.op_type.lower()}"
        values.append(out.value(step.op_type, inputs, hint, **attributes))
    out.quantize(values[-1], op.out, result)


def _input(operand: float | None, values: list[str], kind: DType, out: Emitter) -> str:
    if operand is None:
        return ""
    if isinstance(operand, int):
        return values[operand]
    return out.constant(np.asarray(operand, kind.numpy), "constant")
