"""qnn.dense and qnn.batch_matmul: constraints and result types."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import intonnx
from intonnx.ir.ops.dense import BatchMatMul, Dense, MatrixProduct
from intonnx.ir.types import DType, TensorType, plain
from support.products import q


def i32(*shape: int) -> TensorType:
    return plain(DType.I32, shape)


@pytest.mark.parametrize(
    ("op", "a", "b"),
    [
        (Dense(), q(()), q((3, 4))),
        (Dense(), q((2, 3)), q((3,))),
        (Dense(), q((2, 3)), q((1, 3, 4))),
        (Dense(), q(None), q((3, 4))),
        (BatchMatMul(), q(()), q((3,))),
        (BatchMatMul(), q((2, 4, 1, 3)), q((4, 5, 3, 2))),
        (BatchMatMul(), q((2, 3)), q(None)),
    ],
)
def test_c1_ranks_and_batches(op: MatrixProduct, a: TensorType, b: TensorType) -> None:
    with pytest.raises(intonnx.TypeFailure, match="C1"):
        op.infer([a, b])


@pytest.mark.parametrize("op", [Dense(), BatchMatMul()])
def test_c2_the_shared_axis_has_one_length(op: MatrixProduct) -> None:
    with pytest.raises(intonnx.TypeFailure, match="C2"):
        op.infer([q((2, 3)), q((4, 5))])


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (q((2, 3)), plain(DType.U8, (3, 4))),
        (plain(DType.U8, (2, 3)), q((3, 4))),
        (plain(DType.F32, (2, 3)), plain(DType.U8, (3, 4))),
        (q((2, 3), [0.5, 1.0], 0), q((3, 4))),
        (q((2, 3)), q((3, 4), [1.0] * 3, 0)),
    ],
)
def test_c3_both_are_quantized_b_per_column(a: TensorType, b: TensorType) -> None:
    for op in (Dense(), BatchMatMul()):
        with pytest.raises(intonnx.TypeFailure, match="C3"):
            op.infer([a, b])


def test_c3_a_vector_has_no_columns() -> None:
    with pytest.raises(intonnx.TypeFailure, match="C3"):
        BatchMatMul().infer([q((2, 3)), q((3,), [1.0] * 3, 0)])


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_c4_the_scale_of_the_accumulator_is_a_float32(scale: float) -> None:
    with pytest.raises(intonnx.TypeFailure, match="C4"):
        Dense().infer([q((2, 3), scale), q((3, 4), scale)])


@pytest.mark.parametrize(
    "bias", [plain(DType.F32, (4,)), i32(3), i32(2, 3), i32(3, 4), i32(1, 2, 4)]
)
def test_c5_the_bias_is_i32_and_broadcasts(bias: TensorType) -> None:
    with pytest.raises(intonnx.TypeFailure, match="C5"):
        Dense().infer([q((2, 3)), q((3, 4)), bias])


def test_c6_zero_points_are_operands_of_plain_integers_only() -> None:
    zero = plain(DType.U8, ())
    with pytest.raises(intonnx.TypeFailure, match="C6"):
        Dense().infer([q((2, 3)), q((3, 4)), None, zero])
    kinds = plain(DType.U8, (2, 3)), plain(DType.I8, (3, 4))
    assert Dense().infer([*kinds, None, zero, zero]) == (i32(2, 4),)


@pytest.mark.parametrize(
    ("a", "b", "shape"),
    [
        ((2, 3), (3, 4), (2, 4)),
        ((3,), (3, 4), (4,)),
        (("N", 5, 3), (3, 4), ("N", 5, 4)),
        ((3,), (3,), ()),
        ((2, 3), (3,), (2,)),
        ((3,), (7, 3, 4), (7, 4)),
        ((5, 1, 2, 3), (7, 3, 4), (5, 7, 2, 4)),
        (("N", 2, 3), ("N", 3, 4), ("N", 2, 4)),
        (("N", 2, 3), (1, 3, 4), ("N", 2, 4)),
        (("N", 2, 3), (6, 3, 4), (6, 2, 4)),
        (("N", 2, 3), ("M", 3, 4), ("?", 2, 4)),
    ],
)
def test_result_shapes_are_those_of_matmul(a: Any, b: Any, shape: Any) -> None:
    op = Dense() if len(b) == 2 else BatchMatMul()
    (kind,) = op.infer([q(a, 0.5), q(b, 0.25)])
    assert kind.shape == shape
    assert (kind.dtype, kind.params.scalar_scale) == (DType.I32, 0.125)
    if all(isinstance(size, int) for size in (*a, *b)):
        assert np.matmul(np.zeros(a), np.zeros(b)).shape == shape


def test_columns_of_b_are_the_last_axis_of_the_result() -> None:
    (kind,) = Dense().infer([q((7, 2, 3), 0.5), q((3, 2), [1.0, 2.0], 1)])
    assert (kind.params.axis, kind.params.scale.tolist()) == (2, [0.5, 1.0])
