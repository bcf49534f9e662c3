"""Attributes of operators in the text form, written and read."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np

from intonnx.ir.errors import TextFailure
from intonnx.ir.graph import Graph
from intonnx.ir.op import Op
from intonnx.ir.ops.onnx_op import OnnxOp, Opaque
from intonnx.ir.types import Array, QuantParams, TensorType

from .arrays import read_base64, shortest
from .lexer import Lexer, quoted, word
from .types import DTYPES, TypePrinter, build, read_quant, read_type

DEPTH = 40
"""How deep lists may lie in lists."""
_WORDS = {"none": None, "true": True, "false": False}


def attributes(
    op: Op, implied: Mapping[str, object], types: TypePrinter, body: Callable[[Graph], str]
) -> str:
    """The attributes of an operator, with a space in front, or nothing.

    Left out are those that have their default and those that the result types imply. `body` spells
    a graph.
    """
    if isinstance(op, OnnxOp):
        # ONNX floats are float32, and so have a shorter spelling.
        parts = [
            f"{word(k)}={body(v) if isinstance(v, Graph) else _spell(v, types, single=True)}"
            for k, v in op.attributes.items()
        ]
    else:
        defaults = {
            key: info.get_default(call_default_factory=True)
            for key, info in type(op).model_fields.items()
        }
        parts = [
            f"{key}={_spell(value, types)}"
            for key, default in defaults.items()
            if not _same(value := getattr(op, key), implied.get(key, default))
        ]
    return f" {{{', '.join(parts)}}}" if parts else ""


def _same(a: object, b: object) -> bool:
    # Not `==` alone: False is not 0 here, and an array is equal to nothing.
    return type(a) is type(b) and not isinstance(a, np.ndarray) and a == b


def _spell(value: Any, types: TypePrinter, *, single: bool = False) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, float):
        return shortest(np.array([value], np.float32))[0] if single else repr(value)
    if isinstance(value, str):
        return quoted(str(value))
    if isinstance(value, bytes):
        return f'bytes "{base64.b64encode(value).decode()}"'
    if isinstance(value, list | tuple):
        items = cast("Sequence[object]", value)
        return f"[{', '.join(_spell(item, types, single=single) for item in items)}]"
    return _spell_other(value, types)


def _spell_other(value: object, types: TypePrinter) -> str:
    if isinstance(value, np.generic | np.ndarray):
        return _spell(cast("Array", value).tolist(), types)
    if isinstance(value, Opaque):
        return f'opaque<{word(value.what)}> "{base64.b64encode(value.data).decode()}"'
    if isinstance(value, QuantParams):
        return types.quant(value)
    if isinstance(value, TensorType):
        return types.type(value)
    raise TextFailure(f"an attribute of type {type(value).__name__} has no text form")


def read_attributes(
    lexer: Lexer, arrays: Mapping[str, Array], body: Callable[[], Graph]
) -> dict[str, Any]:
    """The attributes in braces, if there are any; `body` reads a graph. Raises TextFailure."""
    found: dict[str, Any] = {}
    if not lexer.accept("{"):
        return found
    while not lexer.accept("}"):
        if found:
            lexer.expect(",")
        at, key = lexer.token.start, lexer.word()
        if key in found:
            raise lexer.failure(f"the attribute '{key}' is given twice", at)
        lexer.expect("=")
        found[key] = body() if lexer.at("graph") else _read(lexer, arrays, DEPTH)
    return found


def _read(lexer: Lexer, arrays: Mapping[str, Array], depth: int) -> object:
    token = lexer.token
    if token.kind == "number":
        return lexer.integer() if token.text.lstrip("-").isdigit() else float(lexer.advance().text)
    if token.kind == "string":
        return lexer.string()
    if lexer.at("["):
        return _read_list(lexer, arrays, depth)
    if lexer.accept("bytes"):
        return read_base64(lexer)
    if lexer.at("opaque"):
        return _read_opaque(lexer)
    if lexer.at("q"):
        return _read_quantized(lexer, arrays)
    if token.text in DTYPES:
        return read_type(lexer, arrays)
    if token.kind != "word" or token.text not in _WORDS:
        raise lexer.expected("a value")
    return _WORDS[lexer.advance().text]


def _read_list(lexer: Lexer, arrays: Mapping[str, Array], depth: int) -> tuple[object, ...]:
    if depth == 0:
        raise lexer.failure("lists lie too deep in lists")
    lexer.expect("[")
    items: list[object] = []
    while not lexer.accept("]"):
        if items:
            lexer.expect(",")
        items.append(_read(lexer, arrays, depth - 1))
    return tuple(items)


def _read_opaque(lexer: Lexer) -> Opaque:
    at = lexer.expect("opaque").start
    lexer.expect("<")
    what = lexer.word()
    lexer.expect(">")
    return build(lexer, at, Opaque, {"what": what, "data": read_base64(lexer)})


def _read_quantized(lexer: Lexer, arrays: Mapping[str, Array]) -> QuantParams | TensorType:
    start = lexer.token.start
    params = read_quant(lexer, arrays)
    if not lexer.at("["):
        return params
    lexer.seek(start)
    return read_type(lexer, arrays)
