"""A graph as MLIR: operators in generic form, quantized types as `!quant.uniform`.

Source: the MLIR language reference, and the quant dialect's "Quantized type" page. Operators are
those of the IR, which no dialect of MLIR has, so a reader must allow unregistered dialects. Arrays
of more than `INLINE` elements are not in the text.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, cast

import numpy as np

from .graph import Graph, Node
from .names import Names, identifiers
from .op import Op
from .ops.onnx_op import OnnxOp, Opaque
from .text import INLINE
from .text.lexer import quoted, word
from .types import Array, DType, QuantParams, TensorType

_FLOATS = {
    DType.F8E4M3FN: "f8E4M3FN",
    DType.F8E4M3FNUZ: "f8E4M3FNUZ",
    DType.F8E5M2: "f8E5M2",
    DType.F8E5M2FNUZ: "f8E5M2FNUZ",
    DType.F8E8M0: "f8E8M0FNU",
    DType.F4E2M1: "f4E2M1FN",
    DType.C64: "complex<f32>",
    DType.C128: "complex<f64>",
    DType.BOOL: "i1",
    DType.STRING: "!onnx.string",
}


def print_mlir(graph: Graph) -> str:
    """The graph as one MLIR module with one function.

    Values are called as in the model, in letters, digits and underscores.
    """
    return _Printer(graph).text()


class _Printer:
    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        found = identifiers(graph.types)
        # What begins with a digit is a number to MLIR.
        self._names = {k: f"%v{n}" if n[0].isdigit() else f"%{n}" for k, n in found.items()}
        self._fresh = Names(self._names.values())

    def text(self) -> str:
        graph = self._graph
        inputs = ", ".join(f"{self._names[n]}: {self._type(n)}" for n in graph.inputs)
        results = ", ".join(map(self._type, graph.outputs))
        lines = [f"func.func @{_text(graph.name or 'graph')}({inputs}) -> ({results}) {{"]
        lines += [f"  {self._constant(name, array)}" for name, array in graph.constants.items()]
        lines += [f"  {self._node(node)}" for node in graph.nodes]
        outputs = ", ".join(self._names[name] for name in graph.outputs)
        lines += [f"  return {outputs} : {results}" if graph.outputs else "  return", "}"]
        return "\n".join(["module {", *(f"  {line}" for line in lines), "}"]) + "\n"

    def _type(self, name: str) -> str:
        return mlir_type(self._graph.types[name])

    def _constant(self, name: str, array: Array) -> str:
        attributes = f"name = {_text(name)}"
        kind = self._graph.types[name]
        if 0 < array.size <= INLINE and (kind.dtype.is_integer or kind.dtype.is_float):
            plain = mlir_type(TensorType(dtype=kind.dtype, shape=array.shape))
            attributes += f", value = dense<{_dense(array)}> : {plain}"
        return f'{self._names[name]} = "qnn.constant"() {{{attributes}}} : () -> {self._type(name)}'

    def _node(self, node: Node) -> str:
        given = [name for name in node.operands if name]
        operands = ", ".join(self._names[name] for name in given)
        kinds = ", ".join(map(self._type, given))
        results = [self._names[n] if n else self._fresh.fresh("%unused") for n in node.results]
        made = [self._type(name) if name else "none" for name in node.results]
        attributes = ", ".join(_attributes(node))
        line = f"{', '.join(results)} = " if results else ""
        line += f"{quoted(node.op.title)}({operands})"
        line += f" {{{attributes}}}" if attributes else ""
        return f"{line} : ({kinds}) -> ({', '.join(made)})"


def _attributes(node: Node) -> Iterator[str]:
    absent = [index for index, name in enumerate(node.operands) if not name]
    if absent:
        yield f"absent_operands = {_attribute(absent)}"
    for key, value in _fields(node.op).items():
        if value is not None:
            yield f"{word(key)} = {_attribute(value)}"


def _fields(op: Op) -> dict[str, Any]:
    if isinstance(op, OnnxOp):
        return {"opset": op.version, **op.attributes}
    # The parameters of the result are in its type.
    return {key: getattr(op, key) for key in type(op).model_fields if key != "out"}


def _attribute(value: Any) -> str:
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, int | np.integer):
        return f"{int(value)} : i64"
    if isinstance(value, float | np.floating):
        return f"{_number(float(value))} : f64"
    if isinstance(value, str):
        return _text(str(value))
    if isinstance(value, bytes | Opaque):
        data = value.data if isinstance(value, Opaque) else value
        return '"' + "".join(f"\\{byte:02X}" for byte in data) + '"'
    if isinstance(value, np.ndarray):
        return _attribute(value.tolist())
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_attribute, cast('Sequence[object]', value)))}]"
    if isinstance(value, TensorType):
        return mlir_type(value)
    if isinstance(value, QuantParams):
        return mlir_quant(value)
    return _text(str(value))


def mlir_type(kind: TensorType) -> str:
    """A type as MLIR spells it; symbols become unknown sizes."""
    if kind.dtype is DType.CONTAINER:
        return f"!onnx.container<{quoted(kind.container or '')}>"
    element = mlir_quant(kind.quant) if kind.quant is not None else _element(kind.dtype)
    if kind.shape is None:
        return f"tensor<*x{element}>"
    sizes = "".join(f"{size}x" if isinstance(size, int) else "?x" for size in kind.shape)
    return f"tensor<{sizes}{element}>"


def _element(dtype: DType) -> str:
    if dtype.is_integer and not dtype.signed:
        return f"ui{dtype.bits}"
    return _FLOATS.get(dtype, dtype.value)


def mlir_quant(params: QuantParams) -> str:
    """Quantization parameters as `!quant.uniform`: per tensor, per axis, or in blocks."""
    storage = params.storage.value
    if params.low is not None or params.high is not None:
        storage += f"<{params.qmin}:{params.qmax}>"
    text = f"!quant.uniform<{storage}:{params.expressed.value}"
    if params.axis is None:
        return f"{text}, {_pair(params.scalar_scale, params.scalar_zero_point)}>"
    if params.block is None:
        return f"{text}:{params.axis}, {_pairs(params.scale, params.zero_point)}>"
    rank = range(params.scale.ndim)
    blocks = ",".join(f"{axis}:{params.block if axis == params.axis else 1}" for axis in rank)
    return f"{text}:{{{blocks}}}, {_pairs(params.scale, params.zero_point)}>"


def _pairs(scale: Array, zero_point: Array) -> str:
    if scale.ndim == 0:
        return _pair(np.float32(scale[()]), int(zero_point[()]))
    return f"{{{', '.join(map(_pairs, scale, zero_point))}}}"


def _pair(scale: np.float32, zero_point: int) -> str:
    return f"{_number(scale)}:{zero_point}" if zero_point else _number(scale)


def _number(value: float | np.float32) -> str:
    """A float literal, which in MLIR has a point before the exponent."""
    if not math.isfinite(value):
        bits = np.float64(value).view(np.uint64)
        return f"0x{int(bits):016X}"
    number = np.format_float_scientific(value, unique=True, trim="0")
    return number if "." in number else number.replace("e", ".0e")


def _dense(array: Array) -> str:
    if array.ndim:
        return f"[{', '.join(map(_dense, array))}]"
    return _number(float(array)) if array.dtype.kind not in "iub" else str(int(array))


def _text(value: str) -> str:
    """A quoted string: MLIR escapes bytes in two hexadecimal digits."""
    plain = "".join(c if c.isascii() and c.isprintable() else _escaped(c) for c in _slashed(value))
    return f'"{plain}"'


def _slashed(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"')


def _escaped(character: str) -> str:
    return "".join(f"\\{byte:02X}" for byte in character.encode("utf-8", "surrogatepass"))
