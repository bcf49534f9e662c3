"""Element types, quantization parameters and tensor types: what they accept and compare."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from intonnx.ir.types import (
    DType,
    QuantParams,
    TensorType,
    accumulator,
    dtype_of,
    plain,
    quantized,
)

INTEGERS = [dtype for dtype in DType if dtype.is_integer]


def params(**fields: Any) -> QuantParams:
    return QuantParams(**{"storage": DType.U8, "scale": 0.5, "zero_point": 3, **fields})


def per_axis(count: int, axis: int = 0, **fields: Any) -> QuantParams:
    return params(scale=[0.5] * count, zero_point=[0] * count, axis=axis, **fields)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_ranges_of_integers(dtype: DType) -> None:
    assert dtype.high - dtype.low == 2**dtype.bits - 1
    assert dtype.signed == (dtype.low < 0)
    info = np.iinfo(dtype.numpy)
    assert info.min <= dtype.low <= dtype.high <= info.max
    if dtype.bits >= 8:
        assert (info.min, info.max) == (dtype.low, dtype.high)


def test_what_is_an_integer_and_what_is_a_float() -> None:
    assert {d.value for d in INTEGERS} == {f"{s}{b}" for s in "ui" for b in (2, 4, 8, 16, 32, 64)}
    assert {d for d in DType if d.is_float} == {DType.F16, DType.BF16, DType.F32, DType.F64}


@pytest.mark.parametrize("dtype", [d for d in DType if d is not DType.CONTAINER])
def test_element_types_of_arrays(dtype: DType) -> None:
    expected = {DType.U2: DType.U8, DType.U4: DType.U8, DType.I2: DType.I8, DType.I4: DType.I8}
    assert dtype_of(np.zeros(1, dtype.numpy)) is expected.get(dtype, dtype)


def test_arrays_of_other_types_have_no_element_type() -> None:
    assert dtype_of(np.array(["a"])) is DType.STRING
    with pytest.raises(ValueError, match="no element type for numpy datetime64"):
        dtype_of(np.zeros(1, "datetime64[s]"))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"storage": DType.F32}, "the storage type f32 is not an integer type"),
        ({"scale": 0}, "the scale 0.0 is not a finite number above zero"),
        ({"scale": -1}, "the scale -1.0 is not a finite number above zero"),
        ({"scale": np.nan}, "the scale nan is not a finite number above zero"),
        ({"scale": np.inf}, "the scale inf is not a finite number above zero"),
        ({"scale": [1, 0, 2], "zero_point": [0] * 3, "axis": 0}, "the scale 0.0 is not"),
        ({"zero_point": -1}, "the zero point -1 is out of the range of u8, 0 to 255"),
        ({"zero_point": 256}, "the zero point 256 is out of the range of u8"),
        ({"storage": DType.I4, "zero_point": 8}, "the zero point 8 is out of the range of i4"),
        ({"zero_point": [1]}, r"the scale has shape \(\), the zero point \(1,\)"),
        ({"axis": 0}, "an axis is given exactly when there is more than one scale"),
        ({"scale": [1, 2], "zero_point": [0, 0]}, "an axis is given exactly when"),
        ({"scale": [1, 2], "zero_point": [0, 0], "axis": -1}, "the axis -1 is negative"),
        ({"scale": [[1]], "zero_point": [[0]], "axis": 0}, "rank 2 or more need a block size"),
        ({"block": 2}, "the block size 2 is not positive or has no axis"),
        ({"scale": [1], "zero_point": [0], "axis": 0, "block": 0}, "the block size 0"),
        ({"expressed": DType.I8}, "the expressed type i8 is not a float type"),
        ({"low": -1}, "codes -1 to 255 leave the range of u8"),
        ({"low": 9, "high": 8}, "codes 9 to 8 leave the range of u8"),
        ({"high": 256}, "codes 0 to 256 leave the range of u8"),
        ({"extra": 1}, "Extra inputs are not permitted"),
    ],
)
def test_parameters_are_validated(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        params(**fields)


def test_parameters_are_frozen_with_their_arrays() -> None:
    scale = np.array([1, 2], np.float32)
    found = params(scale=scale, zero_point=[0, 0], axis=0)
    scale[0] = 9
    assert found.scale.tolist() == [1, 2]
    with pytest.raises(ValueError, match="read-only"):
        found.scale[0] = 9
    with pytest.raises(ValidationError, match="frozen"):
        found.axis = 1  # type: ignore[misc]


def test_scales_are_float32_and_zero_points_whole_numbers() -> None:
    found = params(scale=0.1)
    assert found.scale.dtype == np.float32
    assert found.scalar_scale == np.float32(0.1)
    assert (found.scalar_zero_point, found.zero_point.dtype) == (3, np.int64)
    assert (found.scale.ndim, found.per_tensor) == (0, True)


def test_equality_is_that_of_every_bit() -> None:
    assert params() == params()
    assert hash(params()) == hash(params())
    assert params() == params(low=0, high=255), "the whole range is the default"
    others = [
        {"scale": np.nextafter(np.float32(0.5), np.float32(1))},
        {"zero_point": 4},
        {"storage": DType.I8},
        {"expressed": DType.F16},
        {"low": 1},
        {"high": 254},
        {"scale": [0.5], "zero_point": [3], "axis": 0},
    ]
    assert all(params() != params(**fields) for fields in others)
    assert per_axis(4, 0) != per_axis(4, 1)
    assert params() != "params"


def test_parameters_broadcast_along_their_axis() -> None:
    scale, zero_point = params(scale=[1, 2], zero_point=[3, 4], axis=1).along(4)
    assert (scale.shape, zero_point.shape) == ((1, 2, 1, 1), (1, 2, 1, 1))
    assert params().along(4)[0].shape == ()


@pytest.mark.parametrize("axis", [-1, None])
def test_the_axis_of_parameters_stays_one(axis: int | None) -> None:
    params = QuantParams(storage=DType.I8, scale=[1, 2], zero_point=[0, 0], axis=0)
    assert params.with_axis(3).axis == 3
    with pytest.raises(ValueError, match="axis"):
        params.with_axis(axis)


def test_accumulators_have_zero_point_zero() -> None:
    found = accumulator(np.array([0.5, 2], np.float32), 1)
    assert found == QuantParams(storage=DType.I32, scale=[0.5, 2], zero_point=[0, 0], axis=1)
    one = accumulator(np.array([0.5], np.float32), 1)
    assert (one.axis, one.scale.shape) == (1, (1,))


@pytest.mark.parametrize(
    ("quant", "shape", "message"),
    [
        (per_axis(3, 2), (1, 3), "axis 2 is out of range for rank 2"),
        (per_axis(3, 1), (3, 4), "3 scales along axis 1, which has 4 elements"),
        (
            QuantParams(storage=DType.U8, scale=[[1]], zero_point=[[0]], axis=0, block=2),
            (2,),
            "blocked scales of rank 2 for rank 1",
        ),
        (
            QuantParams(storage=DType.U8, scale=[[1]], zero_point=[[0]], axis=0, block=2),
            (3, 1),
            "1 scales along axis 0, which has 2 blocks",
        ),
        (
            QuantParams(storage=DType.U8, scale=[[1]], zero_point=[[0]], axis=0, block=2),
            (2, 2),
            "1 scales along axis 1, which has 2 blocks",
        ),
    ],
)
def test_parameters_must_fit_the_shape(
    quant: QuantParams, shape: tuple[int, ...], message: str
) -> None:
    with pytest.raises(ValidationError, match=message):
        quantized(quant, shape)


def test_parameters_fit_unknown_sizes() -> None:
    assert quantized(per_axis(3, 1), ("N", "C")).shape == ("N", "C")
    assert quantized(per_axis(3, 1), None).rank is None
    blocked = QuantParams(
        storage=DType.U8, scale=[[1], [2]], zero_point=[[0], [0]], axis=0, block=2
    )
    assert quantized(blocked, (3, "C")).rank == 2


def test_storage_and_element_type_are_one() -> None:
    with pytest.raises(ValidationError, match="i8 codes with parameters for u8"):
        TensorType(dtype=DType.I8, shape=(), quant=params())


def test_a_type_that_is_not_quantized_has_no_parameters() -> None:
    kind = plain(DType.U8, (1,))
    assert kind.is_integer
    with pytest.raises(ValueError, match="the value is not quantized"):
        _ = kind.params


def test_other_shapes_of_a_type() -> None:
    kind = quantized(params(), (2, 3))
    assert kind.with_shape(["N"]) == quantized(params(), ("N",))
    assert kind.with_shape(None).shape is None
    assert (kind.rank, plain(DType.F32, ()).rank) == (2, 0)
