"""qnn.lut: constraints and result types."""

from __future__ import annotations

import numpy as np
import pytest

import intonnx
from intonnx.ir.ops.lut import FloatStep, Lut
from intonnx.ir.types import DType, QuantParams, TensorType, plain, quantized


def params(storage: DType = DType.U8, *, channels: int | None = None) -> QuantParams:
    shape = () if channels is None else (channels,)
    return QuantParams(
        storage=storage,
        scale=np.full(shape, 0.5),
        zero_point=np.zeros(shape),
        axis=None if channels is None else 0,
    )


@pytest.mark.parametrize(
    ("constraint", "x", "table", "out", "recipe"),
    [
        ("C1", plain(DType.U8, (3,)), 256, params(), ()),
        ("C1", quantized(params(channels=3), (3,)), 256, params(), ()),
        ("C1", quantized(params(DType.I32), (3,)), 256, params(), ()),
        ("C2", quantized(params(), (3,)), 255, params(), ()),
        ("C2", quantized(params(DType.I16), (3,)), 256, params(), ()),
        ("C2", quantized(params(), (3,)), 256, params(DType.I8), ()),
        ("C3", quantized(params(), (3,)), 256, params(channels=3), ()),
        ("C4", quantized(params(), (3,)), 256, params(), (FloatStep("Abs", (1,)),)),
    ],
)
def test_lut_refuses_c1_to_c4(
    constraint: str, x: TensorType, table: int, out: QuantParams, recipe: tuple[FloatStep, ...]
) -> None:
    with pytest.raises(intonnx.TypeFailure, match=constraint):
        Lut(out=out, recipe=recipe).infer([x, plain(DType.U8, (table,))])


def test_lut_of_c1_to_c4_has_the_shape_of_the_codes() -> None:
    recipe = (FloatStep("Abs", (0,)), FloatStep("Mul", (0, 1)))
    operands = [quantized(params(DType.I16), (3, "n")), plain(DType.U8, (65536,))]
    assert Lut(out=params(), recipe=recipe).infer(operands) == (quantized(params(), (3, "n")),)
