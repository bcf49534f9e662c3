"""Read a graph from its text."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

from intonnx.ir.errors import IntonnxError
from intonnx.ir.graph import Graph, Node, Refusal, Source
from intonnx.ir.metadata import metadata_fault
from intonnx.ir.op import Op, registered_ops
from intonnx.ir.ops.onnx_op import OnnxOp
from intonnx.ir.types import Array, TensorType
from intonnx.ir.verify import misfit, verify

from .arrays import read_array
from .attributes import DEPTH, read_attributes
from .lexer import Lexer
from .printer import implied_by
from .types import build, fixed, read_scales, read_type

# No string holds a bare line end, so this finds the section and nothing else.
_SCALES = re.compile(r"^[ \t]*scales[ \t]*\{", re.MULTILINE)


def parse(text: str, weights: Mapping[str, Array] | None = None) -> Graph:
    """The graph that a text describes.

    Args:
        text: what `str(graph)` gives; see the package's docstring for the grammar.
        weights: the arrays of the constants whose values the text does not show, by name:
            `weights_of(graph)` or `graph.constants`. More than the needed ones may be there.

    Raises:
        TextFailure: with line, column and cause, when the text is not well formed, an array is
            missing or is not of the type that the text says, or the graph fails `verify`.
    """
    return _Parser(Lexer(text), weights or {}).graph()


class _Parser:
    """Reads one graph; one more reads each body in it, from the same lexer."""

    def __init__(self, lexer: Lexer, weights: Mapping[str, Array]) -> None:
        self._lexer = lexer
        self._weights = weights
        self._ops = registered_ops()
        self._depth = 0
        self._scales: dict[str, Array] = {}
        self._scales_span = (-1, -1)
        self._types: dict[str, TensorType] = {}
        self._constants: dict[str, Array] = {}
        self._defaults: dict[str, Array] = {}
        self._nodes: list[Node] = []
        self._starts: dict[str, int] = {}

    def graph(self) -> Graph:
        self._read_scales_ahead()
        start = self._lexer.token.start
        graph = self._graph(self._sections)
        self._verify(graph, start)
        return graph

    def _body_graph(self) -> Graph:
        """A graph among the attributes of a node; its arrays are in the text."""
        inner = _Parser(self._lexer, {})
        inner._scales, inner._depth = self._scales, self._depth + 1
        if inner._depth > DEPTH:
            raise self._lexer.failure("bodies lie too deep in bodies")
        return inner._graph(lambda: (inner._folded() if self._lexer.at("folded") else (), {}))

    def _graph(self, sections: Callable[[], tuple[tuple[Source, ...], dict[str, Any]]]) -> Graph:
        lexer = self._lexer
        lexer.expect("graph")
        title = "" if lexer.accept('@""') else lexer.name("@")[1]
        inputs = tuple(self._inputs())
        lexer.expect("->")
        outputs = list(self._outputs())
        self._body()
        folded, metadata = sections()
        for key, kind, at in outputs:
            self._check_use(key, at)
            if self._types[key] != kind:
                raise lexer.failure(f"the output '{key}' is made with another type", at)
        return Graph(
            name=title,
            inputs=inputs,
            outputs=tuple(key for key, _, _ in outputs),
            nodes=tuple(self._nodes),
            types=self._types,
            constants=self._constants,
            defaults=self._defaults,
            folded=folded,
            metadata=metadata,
        )

    def _verify(self, graph: Graph, start: int) -> None:
        try:
            verify(graph)
        except IntonnxError as error:
            at = self._starts.get(error.node or "", start)
            raise self._lexer.failure(str(error), at) from error

    def _read_scales_ahead(self) -> None:
        """Types refer to the scales, which stand behind them."""
        if (found := _SCALES.search(self._lexer.text)) is None:
            return
        self._lexer.seek(found.start())
        start = self._lexer.token.start
        self._scales = read_scales(self._lexer)
        self._scales_span = (start, self._lexer.token.start)
        self._lexer.seek(0)

    def _list(self) -> Iterator[None]:
        """Step through a list in parentheses: yields in front of every item."""
        self._lexer.expect("(")
        if self._lexer.accept(")"):
            return
        while True:
            yield
            if self._lexer.accept(")"):
                return
            self._lexer.expect(",")

    def _inputs(self) -> Iterator[str]:
        for _ in self._list():
            key = self._define("%")
            self._lexer.expect(":")
            self._types[key] = read_type(self._lexer, self._scales)
            if self._lexer.accept("="):
                self._defaults[key] = self._default(self._types[key])
            yield key

    def _default(self, kind: TensorType) -> Array:
        at, shape = self._lexer.token.start, kind.shape
        if self._lexer.accept("<"):
            # The same sizes as in a type, between other brackets.
            sizes: list[int] = []
            while not self._lexer.accept(">"):
                if sizes:
                    self._lexer.expect(",")
                sizes.append(self._lexer.integer())
            shape = tuple(sizes)
        return read_array(self._lexer, kind.dtype, fixed(self._lexer, shape, at))

    def _outputs(self) -> Iterator[tuple[str, TensorType, int]]:
        for _ in self._list():
            at = self._lexer.token.start
            _, key = self._lexer.name()
            self._lexer.expect(":")
            yield key, read_type(self._lexer, self._scales), at

    def _define(self, sigil: str) -> str:
        at = self._lexer.token.start
        _, key = self._lexer.name(sigil)
        if key in self._types:
            raise self._lexer.failure(f"the value '{key}' is made twice", at)
        return key

    def _body(self) -> None:
        self._lexer.expect("{")
        while self._lexer.at("const"):
            self._constant()
        while not self._lexer.accept("}"):
            self._node()

    def _constant(self) -> None:
        lexer = self._lexer
        at = lexer.expect("const").start
        key = self._define("@")
        lexer.expect(":")
        kind = self._types[key] = read_type(lexer, self._scales)
        shape = fixed(lexer, kind.shape, at)
        if lexer.accept("="):
            self._constants[key] = read_array(lexer, kind.dtype, shape)
            return
        if (array := self._weights.get(key)) is None:
            raise lexer.failure(f"the array of the constant '{key}' is not among the weights", at)
        if (cause := misfit(array, kind)) is not None:
            raise lexer.failure(f"the constant '{key}': {cause}", at)
        self._constants[key] = array

    def _node(self) -> None:
        start = self._lexer.token.start
        results = self._results()
        at = self._lexer.token.start
        cls, fields = self._operator()
        operands = self._operands()
        if cls is OnnxOp:
            captured, fields["types"] = self._onnx_lists()
            operands += captured
            fields["captures"] = len(captured)
        given = read_attributes(self._lexer, self._scales, self._body_graph)
        implied = implied_by(self._result_types(results))
        if cls is OnnxOp:
            fields["attributes"] = given
        for key in cls.model_fields.keys() & implied.keys():
            if fields.get(key) is None:
                fields[key] = implied[key]
        op = build(self._lexer, at, cls, fields if cls is OnnxOp else fields | given)
        node = Node(op, operands, results, self._sources(), self._refusal())
        self._nodes.append(node)
        self._starts.setdefault(node.label, start)

    def _onnx_lists(self) -> tuple[tuple[str, ...], tuple[TensorType, ...] | None]:
        """What only an operator of ONNX has: captured values, and types that it declares."""
        lexer = self._lexer
        captured = self._operands() if lexer.accept("captures") else ()
        if not lexer.accept("types"):
            return captured, None
        return captured, tuple(read_type(lexer, self._scales) for _ in self._list())

    def _results(self) -> tuple[str, ...]:
        lexer, results = self._lexer, list[str]()
        while lexer.token.kind == "name" or lexer.at("_"):
            at, key = lexer.token.start, self._result()
            if key and key in results:
                raise lexer.failure(f"the value '{key}' is made twice", at)
            results.append(key)
            if not lexer.accept(","):
                lexer.expect("=")
                break
        return tuple(results)

    def _result(self) -> str:
        return "" if self._lexer.accept("_") else self._define("%")

    def _operator(self) -> tuple[type[Op], dict[str, Any]]:
        lexer, token = self._lexer, self._lexer.token
        if token.kind != "word":
            raise lexer.expected("an operator")
        title = lexer.advance().text
        if title != OnnxOp.name and not title.startswith(f"{OnnxOp.name}."):
            if title not in self._ops:
                raise lexer.failure(f"the operator '{title}' is not known", token.start)
            return self._ops[title], {}
        if title == OnnxOp.name:
            domain, op_type = lexer.string(), lexer.string()
        else:
            domain, _, op_type = title.removeprefix(f"{OnnxOp.name}.").rpartition(".")
        lexer.expect("<")
        version = lexer.integer()
        lexer.expect(">")
        return OnnxOp, {"domain": domain, "op_type": op_type, "version": version}

    def _operands(self) -> tuple[str, ...]:
        return tuple(self._operand() for _ in self._list())

    def _operand(self) -> str:
        lexer, at = self._lexer, self._lexer.token.start
        if lexer.accept("_"):
            return ""
        _, key = lexer.name()
        self._check_use(key, at)
        return key

    def _check_use(self, key: str, at: int) -> None:
        if key not in self._types:
            raise self._lexer.failure(f"the value '{key}' is not made before", at)
        if (self._lexer.text[at] == "@") != (key in self._constants):
            kind = "a" if key in self._constants else "no"
            raise self._lexer.failure(f"'{key}' is {kind} constant", at)

    def _result_types(self, results: tuple[str, ...]) -> list[TensorType | None]:
        kinds: list[TensorType | None] = []
        for key in results:
            self._lexer.expect("," if kinds else ":")
            kind = None if self._lexer.accept("_") else read_type(self._lexer, self._scales)
            if (kind is None) != (not key):
                raise self._lexer.expected(f"a type for '{key}'" if key else "'_'")
            kinds.append(kind)
            if kind is not None:
                self._types[key] = kind
        return kinds

    def _sources(self) -> tuple[Source, ...]:
        sources: list[Source] = []
        if self._lexer.accept("from"):
            sources.append(self._source())
            while self._lexer.accept(","):
                sources.append(self._source())
        return tuple(sources)

    def _source(self) -> Source:
        return Source(op=self._lexer.word(), name=self._lexer.word())

    def _refusal(self) -> Refusal | None:
        if not self._lexer.accept("float"):
            return None
        self._lexer.expect("because")
        return Refusal(code=self._lexer.word(), detail=self._lexer.string())

    def _sections(self) -> tuple[tuple[Source, ...], dict[str, Any]]:
        lexer, metadata = self._lexer, dict[str, Any]()
        folded: tuple[Source, ...] = ()
        seen: set[str] = set()
        while lexer.token.kind != "end":
            section = lexer.token
            if section.text in seen or section.text not in ("folded", "metadata", "scales"):
                raise lexer.expected("another section or the end of the text")
            seen.add(section.text)
            if section.text == "scales":
                if section.start != self._scales_span[0]:
                    raise lexer.failure("the section 'scales' does not begin a line")
                lexer.seek(self._scales_span[1])
            elif section.text == "metadata":
                metadata = self._metadata()
            else:
                folded = self._folded()
        return folded, metadata

    def _folded(self) -> tuple[Source, ...]:
        folded: list[Source] = []
        self._lexer.expect("folded")
        self._lexer.expect("{")
        while not self._lexer.accept("}"):
            folded.append(self._source())
        return tuple(folded)

    def _metadata(self) -> dict[str, Any]:
        lexer = self._lexer
        lexer.expect("metadata")
        at = lexer.token.start
        try:
            found, end = json.JSONDecoder().raw_decode(lexer.text, at)
        except (ValueError, RecursionError) as error:
            raise lexer.failure(f"the metadata is not JSON: {error}", at) from None
        if not isinstance(found, dict):
            raise lexer.failure("the metadata is not a JSON object", at)
        metadata = cast("dict[str, Any]", found)
        if (fault := metadata_fault(metadata)) is not None:
            raise lexer.failure(f"in the metadata {fault}", at)
        lexer.seek(end)
        return metadata
