"""Write a graph as text."""

from __future__ import annotations

import json
from collections.abc import Mapping

from intonnx.ir.errors import TextFailure
from intonnx.ir.graph import Graph, Node, Source
from intonnx.ir.op import Op
from intonnx.ir.ops.onnx_op import OnnxOp
from intonnx.ir.types import Array, DType, TensorType
from intonnx.ir.verify import misfit

from .arrays import INLINE, raw, values
from .attributes import attributes
from .lexer import is_word, name, quoted, word
from .types import TypePrinter, dims


def print_graph(graph: Graph) -> str:
    """The text form of a graph; `parse` reads it back to an equal one.

    Raises TextFailure for an attribute or metadata that has no text form.
    """
    return _Printer(graph).text()


def weights_of(graph: Graph) -> dict[str, Array]:
    """The arrays that are not in the text of a graph: give them to `parse`.

    Those of bodies inside are in the text.
    """
    return {
        key: a for key, a in graph.constants.items() if _inline(a, graph.types.get(key)) is None
    }


def _inline(array: Array, kind: TensorType | None) -> str | None:
    """A constant's values as the text shows them, or None when it does not."""
    if kind is None or kind.shape != array.shape or misfit(array, kind) is not None:
        return None
    return _values(array, kind)


def _values(array: Array, kind: TensorType) -> str | None:
    small = array.size <= INLINE or kind.dtype is DType.STRING
    return values(array, kind.dtype) if small else None


class _Printer:
    """Prints a graph; or, with the types of the graph around it, a body, whose arrays are shown."""

    def __init__(self, graph: Graph, types: TypePrinter | None = None) -> None:
        self._graph = graph
        self._is_body = types is not None
        self._types = types or TypePrinter(graph.types)

    def _graph_lines(self) -> list[str]:
        """The graph itself, and what was folded in it."""
        graph = self._graph
        inputs = ", ".join(map(self._input, graph.inputs))
        outputs = ", ".join(f"{self._value(key)}: {self._type(key)}" for key in graph.outputs)
        lines = [f"graph {name('@', graph.name)}({inputs}) -> ({outputs}) {{"]
        lines += [self._constant(key, array) for key, array in graph.constants.items()]
        lines += [self._node(node) for node in graph.nodes]
        lines.append("}")
        if graph.folded:
            lines += ["folded {", *(f"  {_source(source)}" for source in graph.folded), "}"]
        return lines

    def _body(self, body: Graph) -> str:
        """A graph among the attributes of a node: its lines are indented."""
        # A long list of scales is named once for the whole text.
        lines = [line for part in _Printer(body, self._types)._graph_lines()
                 for line in part.split("\n")]  # fmt: skip
        return "\n    ".join(lines)

    def text(self) -> str:
        graph = self._graph
        lines = self._graph_lines()
        if self._types.arrays:
            arrays = self._types.arrays.items()
            lines += ["scales {", *(f"  {name('@', key)} : {text}" for key, text in arrays), "}"]
        if graph.metadata:
            lines.append(f"metadata {_json(graph.metadata)}")
        return "\n".join(lines) + "\n"

    def _value(self, key: str) -> str:
        if not key:
            return "_"
        return name("@" if key in self._graph.constants else "%", key)

    def _type(self, key: str) -> str:
        return self._types.type(self._graph.types.get(key))

    def _input(self, key: str) -> str:
        text = f"{name('%', key)}: {self._type(key)}"
        if (array := self._graph.defaults.get(key)) is None:
            return text
        kind = self._graph.types[key]
        shape = "" if kind.shape == array.shape else f"<{dims(array.shape)[1:-1]}>"
        return f"{text} = {shape}{_values(array, kind) or raw(array)}"

    def _constant(self, key: str, array: Array) -> str:
        given = _inline(array, self._graph.types.get(key))
        line = f"  const {name('@', key)} : {self._type(key)}"
        if given is None and self._is_body:
            given = raw(array)
        return line if given is None else f"{line} = {given}"

    def _node(self, node: Node) -> str:
        captured = node.op.captures if isinstance(node.op, OnnxOp) else 0
        split = len(node.operands) - captured
        results = ", ".join(name("%", key) if key else "_" for key in node.results)
        line = f"  {results} = " if results else "  "
        line += f"{_operator(node.op)}({self._values(node.operands[:split])})"
        if captured:
            line += f" captures({self._values(node.operands[split:])})"
        kinds = [self._graph.types.get(key) for key in node.results]
        if isinstance(node.op, OnnxOp) and node.op.types != tuple(kinds):
            line += f" types({', '.join(map(self._types.type, node.op.types))})"
        line += attributes(node.op, implied_by(kinds), self._types, self._body)
        if kinds:
            line += f" : {', '.join(map(self._types.type, kinds))}"
        if node.sources:
            line += f" from {', '.join(map(_source, node.sources))}"
        if node.refusal is not None:
            refusal = node.refusal
            line += f" float because {word(refusal.code)} {quoted(refusal.detail)}"
        return line

    def _values(self, keys: tuple[str, ...]) -> str:
        return ", ".join(map(self._value, keys))


def implied_by(kinds: list[TensorType | None]) -> dict[str, object]:
    """The attributes that the result types already say."""
    implied: dict[str, object] = {"types": tuple(kinds)}
    if kinds and kinds[0] is not None:
        implied["out"] = kinds[0].quant
    return implied


def _operator(op: Op) -> str:
    if not isinstance(op, OnnxOp):
        return op.title
    plain = is_word(op.title) and op.op_type and "." not in op.op_type
    title = op.title if plain else f"onnx {quoted(op.domain)} {quoted(op.op_type)}"
    return f"{title}<{op.version}>"


def _source(source: Source) -> str:
    return f"{word(source.op)} {word(source.name)}"


def _json(metadata: Mapping[str, object]) -> str:
    try:
        text = json.dumps(dict(metadata), ensure_ascii=False)
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(dict(metadata))
    except (TypeError, ValueError, RecursionError) as error:
        raise TextFailure(f"the metadata is not JSON: {error}") from None
    return text
