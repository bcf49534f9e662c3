"""Types in the text form, written and read; long lists of scales stand apart, under a name."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import TypeVar

import numpy as np
from pydantic import ValidationError

from intonnx.ir.types import UNKNOWN_DIM, Array, Dim, DType, QuantParams, Record, TensorType

from .arrays import read_array, shortest
from .lexer import Lexer, name, quoted, word

SHORT = 4
"""Up to this many scales are printed inside the type."""

DTYPES = {dtype.value: dtype for dtype in DType}
AnyRecord = TypeVar("AnyRecord", bound=Record)


class TypePrinter:
    """Writes types, and remembers the arrays that they refer to.

    Attributes:
        arrays: spelled `type = values`, by the name that the types call them.
    """

    def __init__(self, taken: Container[str]) -> None:
        self.arrays: dict[str, str] = {}
        self._names: dict[tuple[object, ...], str] = {}
        self._taken = taken

    def type(self, kind: TensorType | None) -> str:
        """A type, `_` where there is none."""
        if kind is None:
            return "_"
        if kind.quant is not None:
            return self.quant(kind.quant) + dims(kind.shape)
        container = "" if kind.container is None else f"<{quoted(kind.container)}>"
        return kind.dtype.value + container + dims(kind.shape)

    def quant(self, params: QuantParams) -> str:
        """Quantization parameters."""
        text = f"q<{params.storage.value}"
        if params.low is not None or params.high is not None:
            low = "" if params.low is None else params.low
            high = "" if params.high is None else params.high
            text += f"<{low}:{high}>"
        if params.expressed is not DType.F32:
            text += f":{params.expressed.value}"
        text += f", {self._numbers(params.scale, 's', DType.F32)}{self._zero_point(params)}"
        if params.axis is not None:
            text += f" axis={params.axis}"
        if params.block is not None:
            text += f" block={params.block}"
        return text + ">"

    def _zero_point(self, params: QuantParams) -> str:
        zero_point = params.zero_point
        first = int(zero_point.flat[0]) if zero_point.size else 0
        if bool(np.all(zero_point == first)):
            return f":{first}" if first or params.per_tensor else ""
        return f":{self._numbers(zero_point, 'z', DType.I64)}"

    def _numbers(self, array: Array, letter: str, dtype: DType) -> str:
        flat = array.reshape(-1)
        if array.ndim == 0 or (array.ndim == 1 and array.size <= SHORT):
            words = _spell(flat, dtype)
            return f"[{words}]" if array.ndim else words
        key = (letter, array.shape, array.tobytes())
        if key not in self._names:
            self._names[key] = fresh = self._fresh(letter)
            self.arrays[fresh] = f"{dtype.value}{dims(array.shape)} = [{_spell(flat, dtype)}]"
        return name("@", self._names[key])

    def _fresh(self, letter: str) -> str:
        number = len(self.arrays) + 1
        while (found := f"{letter}{number}") in self.arrays or found in self._taken:
            number += 1
        return found


def _spell(flat: Array, dtype: DType) -> str:
    return ", ".join(shortest(flat) if dtype is DType.F32 else map(str, flat.tolist()))


def summary(kind: TensorType) -> str:
    """A type by itself: more than `SHORT` scales are counted, not named."""
    quant = kind.quant
    if quant is None or quant.scale.size <= SHORT:
        return TypePrinter(()).type(kind)
    return f"{kind.dtype.value}{dims(kind.shape)}, {quant.scale.size} scales on axis {quant.axis}"


def dims(shape: tuple[Dim, ...] | None) -> str:
    """A shape: sizes, symbols and `?`, or `[*]` when the rank is not known."""
    if shape is None:
        return "[*]"
    return f"[{','.join(map(_dim, shape))}]"


def _dim(size: Dim) -> str:
    if isinstance(size, str):
        return UNKNOWN_DIM if size == UNKNOWN_DIM else word(size)
    return str(size)


def read_type(lexer: Lexer, arrays: Mapping[str, Array]) -> TensorType:
    """A type; `arrays` holds the scales that it may refer to. Raises TextFailure."""
    at = lexer.token.start
    if lexer.at("q"):
        params = read_quant(lexer, arrays)
        fields = {"dtype": params.storage, "quant": params, "shape": read_dims(lexer)}
        return build(lexer, at, TensorType, fields)
    dtype, container = _read_dtype(lexer), None
    if lexer.accept("<"):
        container = lexer.string()
        lexer.expect(">")
    fields = {"dtype": dtype, "container": container, "shape": read_dims(lexer)}
    return build(lexer, at, TensorType, fields)


def read_dims(lexer: Lexer) -> tuple[Dim, ...] | None:
    """A shape, or None for `[*]`."""
    lexer.expect("[")
    if lexer.accept("*"):
        lexer.expect("]")
        return None
    sizes: list[Dim] = []
    while not lexer.accept("]"):
        if sizes:
            lexer.expect(",")
        sizes.append(_read_dim(lexer))
    return tuple(sizes)


def _read_dim(lexer: Lexer) -> Dim:
    if lexer.token.kind == "number":
        return lexer.integer()
    return UNKNOWN_DIM if lexer.accept(UNKNOWN_DIM) else lexer.word()


def read_quant(lexer: Lexer, arrays: Mapping[str, Array]) -> QuantParams:
    """Quantization parameters, `q<...>`. Raises TextFailure."""
    at = lexer.expect("q").start
    lexer.expect("<")
    fields: dict[str, object] = {"storage": _read_dtype(lexer)}
    if lexer.accept("<"):
        fields["low"] = None if lexer.at(":") else lexer.integer()
        lexer.expect(":")
        fields["high"] = None if lexer.at(">") else lexer.integer()
        lexer.expect(">")
    if lexer.accept(":"):
        fields["expressed"] = _read_dtype(lexer)
    lexer.expect(",")
    scale = _read_numbers(lexer, DType.F32, arrays)
    zero_point = np.zeros((), np.int64)
    if lexer.accept(":"):
        zero_point = _read_numbers(lexer, DType.I64, arrays)
    if zero_point.ndim == 0:
        zero_point = np.full(scale.shape, zero_point)
    while not lexer.accept(">"):
        key = lexer.token.text
        if key not in ("axis", "block") or key in fields:
            raise lexer.expected("'axis', 'block' or '>'")
        lexer.advance()
        lexer.expect("=")
        fields[key] = lexer.integer()
    return build(lexer, at, QuantParams, {**fields, "scale": scale, "zero_point": zero_point})


def _read_dtype(lexer: Lexer) -> DType:
    if lexer.token.text not in DTYPES:
        raise lexer.expected("an element type")
    return DTYPES[lexer.advance().text]


def _read_numbers(lexer: Lexer, dtype: DType, arrays: Mapping[str, Array]) -> Array:
    if lexer.token.kind == "name":
        at = lexer.token.start
        _, found = lexer.name("@")
        if found not in arrays:
            raise lexer.failure(f"no array '{found}' among the scales", at)
        return arrays[found]
    return read_array(lexer, dtype, None if lexer.at("[") else ())


def read_scales(lexer: Lexer) -> dict[str, Array]:
    """The section `scales`. Raises TextFailure."""
    found: dict[str, Array] = {}
    lexer.expect("scales")
    lexer.expect("{")
    while not lexer.accept("}"):
        at = lexer.token.start
        _, key = lexer.name("@")
        if key in found:
            raise lexer.failure(f"two arrays are called '{key}'", at)
        lexer.expect(":")
        dtype, shape = _read_dtype(lexer), fixed(lexer, read_dims(lexer), at)
        lexer.expect("=")
        found[key] = read_array(lexer, dtype, shape)
    return found


def fixed(lexer: Lexer, shape: tuple[Dim, ...] | None, at: int) -> tuple[int, ...]:
    """A shape that must be all numbers, as that of an array is."""
    sizes = tuple(size for size in shape or () if isinstance(size, int) and size >= 0)
    if shape is None or len(sizes) != len(shape):
        raise lexer.failure(f"the shape {dims(shape)} of an array is not fixed", at)
    return sizes


def build(lexer: Lexer, at: int, cls: type[AnyRecord], fields: Mapping[str, object]) -> AnyRecord:
    """A record from its fields; what it refuses is a TextFailure at this offset."""
    try:
        return cls.model_validate(dict(fields))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        cause = first["msg"].removeprefix("Value error, ")
        raise lexer.failure(f"{where}: {cause}" if where else cause, at) from None
