"""qnn.conv1d, conv2d and conv3d: constraints and result types."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import intonnx
from intonnx.ir.ops.conv import Conv, Conv2d
from intonnx.ir.types import DType, TensorType, plain
from support.products import q


def conv2d(**changes: Any) -> Conv2d:
    return Conv2d(**{"strides": (1, 1), "pads": (0,) * 4, "dilations": (1, 1), **changes})


X, W = q((1, 4, 6, 6)), q((8, 4, 3, 3))


@pytest.mark.parametrize(
    ("op", "x", "w"),
    [
        (conv2d(), q((1, 4, 6)), W),
        (conv2d(), X, q((8, 4, 3))),
        (conv2d(), q(None), W),
        (conv2d(), X, q((8, 4, "k", 3))),
        (conv2d(strides=(1,)), X, W),
        (conv2d(strides=(0, 1)), X, W),
        (conv2d(dilations=(1, 0)), X, W),
        (conv2d(pads=(0, 0)), X, W),
        (conv2d(pads=(0, 0, 0, -1)), X, W),
        (conv2d(groups=0), X, W),
        (conv2d(), q((1, 4, 1, 6)), W),
    ],
)
def test_c1_ranks_and_geometry(op: Conv, x: TensorType, w: TensorType) -> None:
    with pytest.raises(intonnx.TypeFailure, match="C1"):
        op.infer([x, w])


@pytest.mark.parametrize(("groups", "w"), [(1, (8, 3, 3, 3)), (2, (8, 4, 3, 3)), (4, (6, 1, 3, 3))])
def test_c2_channels_and_groups(groups: int, w: tuple[int, ...]) -> None:
    with pytest.raises(intonnx.TypeFailure, match="C2"):
        conv2d(groups=groups).infer([X, q(w)])


@pytest.mark.parametrize(
    ("x", "w"),
    [
        (X, plain(DType.U8, (8, 4, 3, 3))),
        (plain(DType.U8, (1, 4, 6, 6)), W),
        (plain(DType.F32, (1, 4, 6, 6)), plain(DType.F32, (8, 4, 3, 3))),
        (q((1, 4, 6, 6), [0.5] * 4, 1), W),
        (X, q((8, 4, 3, 3), [0.5] * 4, 1)),
    ],
)
def test_c3_both_are_quantized_weights_per_output_channel(x: TensorType, w: TensorType) -> None:
    with pytest.raises(intonnx.TypeFailure, match="C3"):
        conv2d().infer([x, w])


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_c4_the_scale_of_the_accumulator_is_a_float32(scale: float) -> None:
    with pytest.raises(intonnx.TypeFailure, match="C4"):
        conv2d().infer([q((1, 4, 6, 6), scale), q((8, 4, 3, 3), scale)])


@pytest.mark.parametrize(
    "bias", [plain(DType.F32, (8,)), plain(DType.I32, (7,)), plain(DType.I32, (8, 1, 1))]
)
def test_c5_the_bias_is_i32_for_each_channel(bias: TensorType) -> None:
    with pytest.raises(intonnx.TypeFailure, match="C5"):
        conv2d().infer([X, W, bias])


def test_c6_zero_points_are_operands_of_plain_integers_only() -> None:
    zero = plain(DType.U8, ())
    with pytest.raises(intonnx.TypeFailure, match="C6"):
        conv2d().infer([X, W, None, zero])
    kinds = plain(DType.U8, (1, 4, 6, 6)), plain(DType.I8, (8, 4, 3, 3))
    (kind,) = conv2d().infer([*kinds, None, zero, plain(DType.I8, (8,))])
    assert kind == plain(DType.I32, (1, 8, 4, 4))


def test_the_accumulator_has_the_product_of_the_scales_along_axis_1() -> None:
    (kind,) = conv2d().infer([X, q((8, 4, 3, 3), np.arange(1, 9), 0)])
    assert (kind.params.axis, kind.params.scale.tolist()) == (1, [n / 2 for n in range(1, 9)])


@pytest.mark.parametrize(
    ("changes", "shape"),
    [
        ({}, ("N", 8, "?", 10)),
        ({"pads": (1, 1, 1, 1)}, ("N", 8, "H", 12)),
        ({"auto_pad": "SAME_UPPER"}, ("N", 8, "H", 12)),
        ({"auto_pad": "SAME_LOWER", "strides": (2, 5)}, ("N", 8, "?", 3)),
        ({"auto_pad": "VALID", "dilations": (2, 3)}, ("N", 8, "?", 6)),
    ],
)
def test_symbolic_sizes(changes: dict[str, Any], shape: tuple[int | str, ...]) -> None:
    (kind,) = conv2d(**changes).infer([q(("N", 4, "H", 12)), W])
    assert kind.shape == shape
