"""Arrays in the text form: the shortest spellings that read back to the same bits."""

from __future__ import annotations

import base64
import binascii
import math
from typing import Any

import numpy as np

from intonnx.ir.types import Array, DType

from .lexer import Lexer, quoted

INLINE = 8
"""Constants of up to this many elements are printed with their values."""


def values(array: Array, dtype: DType) -> str | None:
    """An array as one element or a flat list, or None when that would not read back the same."""
    words = _words(array.reshape(-1), dtype)
    if words is None:
        return None
    text = f"[{', '.join(words)}]" if array.ndim else words[0]
    same = read_array(Lexer(text), dtype, array.shape)
    equal = same.tolist() == array.tolist() if dtype is DType.STRING else _same_bits(same, array)
    return text if equal else None


def raw(array: Array) -> str:
    """An array as its little-endian bytes."""
    # The types of ml_dtypes have one byte order; numpy's have two.
    data = array.astype(_little(array.dtype)).tobytes()
    return f'raw "{base64.b64encode(data).decode()}"'


def shortest(array: Array) -> list[str]:
    """The elements of a flat float array, each as few digits as read back to it."""
    spelled: list[str] = array.astype(str).tolist()
    again = np.array([float(text) for text in spelled]).astype(array.dtype)
    for index in np.flatnonzero(again != array):
        spelled[index] = repr(float(array[index]))
    return spelled


def read_array(lexer: Lexer, dtype: DType, shape: tuple[int, ...] | None) -> Array:
    """An array of a known type and shape; None takes rank 1 and as many values as there are.

    Raises TextFailure when the values are not of that type or not that many.
    """
    at = lexer.token.start
    if lexer.accept("raw"):
        array = _read_raw(lexer, dtype, at)
    elif dtype is DType.STRING:
        array = _read_strings(lexer)
    elif lexer.at("["):
        array = _read_list(lexer, dtype)
    else:
        array = _convert(lexer, dtype, [lexer.token.text], lexer.token.start)
        lexer.advance()
    if shape is None:
        return array
    if array.size != math.prod(shape):
        raise lexer.failure(f"{array.size} elements for the shape {list(shape)}", at)
    return array.reshape(shape)


def _same_bits(a: Array, b: Array) -> bool:
    return a.dtype == b.dtype and a.tobytes() == b.tobytes()


def _words(flat: Array, dtype: DType) -> list[str] | None:
    if dtype is DType.STRING:
        return [quoted(str(item)) for item in flat]
    if dtype is DType.BOOL:
        return ["true" if item else "false" for item in flat]
    if dtype.is_integer:
        return [str(item) for item in flat.tolist()]
    if dtype in (DType.C64, DType.C128, DType.CONTAINER):
        return None
    # The 8 and 16-bit types of ml_dtypes are exact in float32.
    return shortest(flat if dtype in (DType.F16, DType.F64) else flat.astype(np.float32))


def _read_raw(lexer: Lexer, dtype: DType, at: int) -> Array:
    if dtype.numpy.hasobject:
        raise lexer.failure(f"an array of {dtype} has no bytes", at)
    data, kind = read_base64(lexer), dtype.numpy
    if len(data) % kind.itemsize:
        raise lexer.failure(f"{len(data)} bytes are not a whole number of {dtype} elements", at)
    return np.frombuffer(data, _little(kind)).astype(kind)


def _little(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return dtype.newbyteorder("<") if dtype.isbuiltin == 1 else dtype


def read_base64(lexer: Lexer) -> bytes:
    """Bytes in a quoted string."""
    at = lexer.token.start
    try:
        return base64.b64decode(lexer.string(), validate=True)
    except (binascii.Error, ValueError) as error:
        raise lexer.failure(f"not base64: {error}", at) from None


def _read_strings(lexer: Lexer) -> Array:
    items: list[str] = []
    if not lexer.accept("["):
        items.append(lexer.string())
    else:
        while not lexer.accept("]"):
            if items:
                lexer.expect(",")
            items.append(lexer.string())
    array = np.empty(len(items), np.object_)
    array[:] = items
    return array


def _read_list(lexer: Lexer, dtype: DType) -> Array:
    """Read a list of numbers in one go: long lists are most of a text."""
    start = lexer.token.start + 1
    end = lexer.text.find("]", start)
    if end < 0:
        raise lexer.failure("the list is not closed")
    body = lexer.text[start:end]
    array = _convert(lexer, dtype, body.split(",") if body.strip() else [], start)
    lexer.seek(end + 1)
    return array


def _convert(lexer: Lexer, dtype: DType, words: list[str], at: int) -> Array:
    numbers: list[int | float | bool] = []
    try:
        if dtype is DType.BOOL:
            numbers.extend({"true": True, "false": False}[text.strip()] for text in words)
        elif dtype.is_integer:
            numbers.extend(map(int, words))
        else:
            numbers.extend(map(float, words))
    except (ValueError, KeyError):
        bad = words[len(numbers)]
        at += sum(len(text) + 1 for text in words[: len(numbers)])
        at += len(bad) - len(bad.lstrip())
        raise lexer.failure(
            f"expected a value of {dtype}, found '{bad.strip()[:40]}'", at
        ) from None
    return _stored(lexer, dtype, numbers, at)


def _stored(lexer: Lexer, dtype: DType, numbers: list[int | float | bool], at: int) -> Array:
    if dtype.is_integer and numbers and not dtype.low <= min(numbers) <= max(numbers) <= dtype.high:
        raise lexer.failure(f"a number is out of the range of {dtype}", at)
    if dtype is DType.BOOL or dtype.is_integer:
        return np.array(numbers, dtype.numpy)
    try:
        with np.errstate(over="raise"):
            return np.array(numbers, np.float64).astype(dtype.numpy)
    except (FloatingPointError, TypeError) as error:
        raise lexer.failure(f"the numbers are not values of {dtype}: {error}", at) from None
