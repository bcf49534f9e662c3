"""Movers on codes: the same operator of ONNX, which moves any integers."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import onnx

from intonnx.ir.graph import Node
from intonnx.ir.types import DType
from intonnx.protos import element_of_dtype

from .emitter import Emitter

WHOLE_BYTES = frozenset(
    {DType.U8, DType.I8, DType.U16, DType.I16, DType.U32, DType.I32, DType.U64, DType.I64}
)
"""What the CPU kernels of onnxruntime 1.32 move; of the narrower types only Transpose does any."""


def move(
    op_type: str,
    node: Node,
    out: Emitter,
    others: Sequence[str] = (),
    *,
    kernels: Collection[DType] = WHOLE_BYTES,
    **attributes: Any,
) -> None:
    """Write the operator on the codes of operand 0, or between DQ and Q.

    The latter where the form asks for it, and where no kernel moves the type: `kernels` are those
    that one does. Sums of 32 or 64 bits have no QuantizeLinear: without a kernel they are moved as
    float64.
    """
    data = node.operands[0]
    kind = out.type(data)
    has_kernel = kind.dtype in kernels or (out.runtime == "standard" and kind.dtype in WHOLE_BYTES)
    narrow = kind.quant is not None and kind.dtype.bits <= 16
    if has_kernel and not (narrow and not out.qlinear):
        # onnxruntime 1.32 crashes on a Split with a result that has no name.
        names = [name or out.fresh(f"{data}.unused") for name in _results(node, out)]
        out.node(op_type, [out.operand(data), *others], names, **attributes)
    elif narrow:
        _between(op_type, node, out, others, attributes)
    else:
        _as_float64(op_type, node, out, others, attributes)


def _results(node: Node, out: Emitter) -> list[str]:
    """The results of a node, also those at the end that nothing asks for: "".

    ONNX lets a Split leave them out only where it is not told how many parts there are.
    """
    count = len(node.op.infer([out.type(name) if name else None for name in node.operands]))
    return [*node.results, *[""] * (count - len(node.results))]


def _between(
    op_type: str, node: Node, out: Emitter, others: Sequence[str], attributes: dict[str, Any]
) -> None:
    results = _results(node, out)
    names = [out.fresh(f"{name or node.operands[0]}.unquantized") for name in results]
    out.node(op_type, [out.real(node.operands[0]), *others], names, **attributes)
    for name, result in zip(names, results, strict=True):
        if result:
            out.quantize(name, out.params(result), result)


def _as_float64(
    op_type: str, node: Node, out: Emitter, others: Sequence[str], attributes: dict[str, Any]
) -> None:
    data, result = node.operands[0], node.results[0]
    wide = out.value("Cast", [out.operand(data)], f"{data}.wide", to=onnx.TensorProto.DOUBLE)
    moved = out.value(op_type, [wide, *others], f"{result}.wide", **attributes)
    out.node("Cast", [moved], [result], to=element_of_dtype(out.type(data).dtype))
