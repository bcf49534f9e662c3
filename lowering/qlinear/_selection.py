"""Operators whose every result is one of the values given to them: on codes, else DQ -> op -> Q."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from intonnx.ir.graph import Node
from intonnx.ir.types import DType, QuantParams

from .emitter import Emitter
from .quantize import requantized_by_table


def select(
    op_type: str,
    node: Node,
    out: Emitter,
    params: QuantParams | None,
    data: Sequence[int],
    *,
    kernels: Collection[DType],
    **attributes: Any,
) -> None:
    """Write the operator on codes where onnxruntime has a kernel for them, else DQ -> op -> Q.

    The operands at the indices `data` are chosen from; those with other parameters than the
    result's `params` get these by a table of 8-bit codes. `params` is None for plain integers.
    """
    codes = _codes(node, out, params, data, kernels)
    if codes is None:
        reals = {index: out.real(node.operands[index]) for index in data}
        result = node.results[0]
        real = out.value(op_type, _inputs(node, out, reals), f"{result}.unquantized", **attributes)
        out.quantize(real, out.params(result), result)
    else:
        out.node(op_type, _inputs(node, out, codes), node.results, **attributes)


def has_equal_parameters(
    node: Node, out: Emitter, params: QuantParams | None, data: Sequence[int]
) -> bool:
    """Whether every operand at `data` has the parameters of the result, or all are integers."""
    return params is None or all(out.params(node.operands[index]) == params for index in data)


def _codes(
    node: Node,
    out: Emitter,
    params: QuantParams | None,
    data: Sequence[int],
    kernels: Collection[DType],
) -> dict[int, str] | None:
    """The names of the codes with these parameters by index, None where they stay real values."""
    if params is None:
        return {index: out.operand(node.operands[index]) for index in data}
    kinds = [out.params(node.operands[index]) for index in data]
    by_table = all(kind.storage.bits == params.storage.bits == 8 for kind in kinds)
    equal = has_equal_parameters(node, out, params, data)
    if not out.qlinear or params.storage not in kernels or not (equal or by_table):
        return None
    return {index: _requantized(node.operands[index], params, out) for index in data}


def _requantized(name: str, params: QuantParams, out: Emitter) -> str:
    if out.params(name) == params:
        return out.operand(name)
    result = out.fresh(f"{name}.requantized")
    requantized_by_table(name, params, result, out)
    return result


def _inputs(node: Node, out: Emitter, data: dict[int, str]) -> list[str]:
    return [data.get(index) or out.operand(name) for index, name in enumerate(node.operands)]
