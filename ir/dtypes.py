"""Element types, and the numpy types that hold them."""

from __future__ import annotations

import enum
from typing import Any, Self

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


class DType(enum.StrEnum):
    """Element types; the values are the spellings of the text form.

    Attributes:
        is_integer: whether values are whole numbers of a fixed width (bool is not).
        is_float: whether values are floating point numbers of 16 bits or more.
        bits: width of an integer type in bits.
        signed: whether an integer type holds negative numbers.
        low, high: the smallest and the largest value of an integer type, else 0.
    """

    is_integer: bool
    is_float: bool
    bits: int
    signed: bool
    low: int
    high: int

    def __new__(cls, value: str) -> Self:
        """A type that knows its range: every value of a graph asks for it."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.is_integer = value[0] in "ui" and value[1:].isdigit()
        member.is_float = value in ("f16", "bf16", "f32", "f64")
        member.bits = int(value[1:]) if value[1:].isdigit() else 0
        member.signed = member.is_integer and value[0] == "i"
        member.low = -(1 << (member.bits - 1)) if member.signed else 0
        member.high = (1 << (member.bits - member.signed)) - 1 if member.is_integer else 0
        return member

    U2 = "u2"
    I2 = "i2"
    U4 = "u4"
    I4 = "i4"
    U8 = "u8"
    I8 = "i8"
    U16 = "u16"
    I16 = "i16"
    U32 = "u32"
    I32 = "i32"
    U64 = "u64"
    I64 = "i64"
    F16 = "f16"
    BF16 = "bf16"
    F32 = "f32"
    F64 = "f64"
    BOOL = "bool"
    STRING = "str"
    C64 = "c64"
    C128 = "c128"
    F8E4M3FN = "f8e4m3fn"
    F8E4M3FNUZ = "f8e4m3fnuz"
    F8E5M2 = "f8e5m2"
    F8E5M2FNUZ = "f8e5m2fnuz"
    F8E8M0 = "f8e8m0"
    F4E2M1 = "f4e2m1"
    CONTAINER = "container"
    """Not a tensor: a sequence, an optional or a map."""

    @property
    def ml_name(self) -> str:
        """What the type is called in the package ml_dtypes, "" when numpy has it."""
        return _ML_NAMES.get(self, "")

    @property
    def numpy(self) -> np.dtype[Any]:
        """The numpy type that holds an array: types under 8 bits take a byte an element."""
        if self in _NUMPY:
            return np.dtype(_NUMPY[self])
        # Only models with such types pay for the import.
        import ml_dtypes

        found: np.dtype[Any] = np.dtype(getattr(ml_dtypes, _ML_DTYPES[self]))
        return found


_NUMPY: dict[DType, type] = {
    DType.U2: np.uint8,
    DType.I2: np.int8,
    DType.U4: np.uint8,
    DType.I4: np.int8,
    DType.U8: np.uint8,
    DType.I8: np.int8,
    DType.U16: np.uint16,
    DType.I16: np.int16,
    DType.U32: np.uint32,
    DType.I32: np.int32,
    DType.U64: np.uint64,
    DType.I64: np.int64,
    DType.F16: np.float16,
    DType.F32: np.float32,
    DType.F64: np.float64,
    DType.BOOL: np.bool_,
    DType.STRING: np.object_,
    DType.C64: np.complex64,
    DType.C128: np.complex128,
    DType.CONTAINER: np.object_,
}
_ML_DTYPES: dict[DType, str] = {
    DType.BF16: "bfloat16",
    DType.F8E4M3FN: "float8_e4m3fn",
    DType.F8E4M3FNUZ: "float8_e4m3fnuz",
    DType.F8E5M2: "float8_e5m2",
    DType.F8E5M2FNUZ: "float8_e5m2fnuz",
    DType.F8E8M0: "float8_e8m0fnu",
    DType.F4E2M1: "float4_e2m1fn",
}
_ML_NAMES: dict[DType, str] = {
    **_ML_DTYPES,
    DType.U2: "uint2",
    DType.I2: "int2",
    DType.U4: "uint4",
    DType.I4: "int4",
}


def dtype_of(array: Array) -> DType:
    """The element type of a numpy array; arrays of Python strings are `STRING`."""
    for dtype, scalar in _NUMPY.items():
        if array.dtype == scalar and dtype.value not in ("u2", "i2", "u4", "i4"):
            return dtype
    if array.dtype.kind in "US":
        return DType.STRING
    for dtype, name in _ML_DTYPES.items():
        if array.dtype.name == name:
            return dtype
    raise ValueError(f"no element type for numpy {array.dtype}")
