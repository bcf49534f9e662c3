"""Operators that choose among values: every storage type, equal and other parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx
import pytest

import intonnx
from intonnx.ir.op import Op
from intonnx.ir.types import DType, QuantParams, TensorType, plain, quantized
from support.models import Operand, Params, qdq_model, run_inputs, s8, s16, u8, u16
from support.movers import check_same, names_of
from support.wings import refusal_of

OUT = QuantParams(storage=DType.U8, scale=0.5, zero_point=1)

TRIPLES: list[tuple[Params, Params, Params]] = [
    (u8(0.02, 114), u8(0.02, 114), u8(0.02, 114)),
    (u8(0.5, 0), u8(0.3, 255), u8(0.3, 255)),
    (s8(0.5, -128), s8(0.25, 127), s8(0.3, 0)),
    (u8(0.5, 200), s8(0.5, 3), u8(0.25, 100)),
    (s8(1 / 3, None), s8(1 / 3, 0), u8(0.5, 7)),
    (u16(0.001, 65535), u16(0.001, 65535), u16(0.001, 65535)),
    (s16(0.1, 0), u8(0.7, 3), s16(0.05, 9)),
]
"""Parameters of two operands and of the result."""


def check_selection(
    op_type: str,
    inputs: Sequence[Operand],
    out: Params,
    name: str,
    *,
    opset: int = 21,
    **attrs: Any,
) -> intonnx.Graph:
    """No quantum of difference in any lowering; the operator `name` is what it became."""
    model = qdq_model(op_type, inputs, out=out, attrs=attrs, opset=opset)
    graph = check_same(model, run_inputs(model, spread=40.0))
    assert name in names_of(graph)
    return graph


def check_types(op: Op, others: Sequence[tuple[int, TensorType]], shapes: Sequence[Any]) -> None:
    """C1 of `Selection`: operands of one kind. `others` are the operands that are no data."""

    def infer(made: Op, kinds: Sequence[TensorType]) -> TensorType:
        operands = list(kinds)
        for index, kind in others:
            operands.insert(index, kind)
        return made.infer(operands)[0]

    fields = {key: getattr(op, key) for key in type(op).model_fields}
    integers = type(op)(**{**fields, "out": None})
    several = QuantParams(storage=DType.U8, scale=[1, 2], zero_point=[0, 0], axis=0)
    codes = [quantized(OUT, shape) for shape in shapes]
    bytes_ = [plain(DType.U8, shape) for shape in shapes]
    assert infer(op, codes).quant == OUT
    assert infer(integers, bytes_).quant is None
    wide = quantized(OUT.model_copy(update={"storage": DType.I32}), shapes[0])
    for made, kinds in (
        (op, bytes_),
        (op, [wide, *codes[1:]]),
        (integers, codes),
        (integers, [plain(DType.F32, shape) for shape in shapes]),
        (integers, [plain(DType.I8, shapes[0]), *bytes_[1:]]),
        (type(op)(**{**fields, "out": several}), codes),
    ):
        with pytest.raises(intonnx.TypeFailure, match="C1"):
            infer(made, kinds)


def refused(model: onnx.ModelProto, op_type: str, code: str, *details: str) -> None:
    """The one operator of this type is refused with this code, and its detail says all of this."""
    found, detail = refusal_of(model, op_type)
    assert found == code, detail
    for expected in details:
        assert expected in detail
