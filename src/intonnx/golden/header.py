"""A C header with what firmware needs: weights, multipliers, shifts, tables, zero points.

Source of the types and literals: C11, 6.4.4 and 7.20.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence

import numpy as np

from intonnx import __version__
from intonnx.ir.archive import replacing
from intonnx.ir.graph import Graph, Node
from intonnx.ir.names import identifiers
from intonnx.ir.text.types import summary
from intonnx.ir.types import Array, DType, QuantParams, TensorType
from intonnx.lowering.executable import node_kernel
from intonnx.lowering.fixed_point import Multiplier, recorded

_WIDTH = 96
_HEAD = """\
/* {title}, by intonnx {version}: constants of the numerics "fixed".

   A real factor is multiplier * 2^(shift - 31). Applied to a whole number x it is
       (x * multiplier + (1 << (30 - shift))) >> (31 - shift)
   in 64 bits, with an arithmetic shift; then the zero point is added and the code limited to
   its least and largest value. An operator with several factors, such as an addition, adds up the
   products before it shifts. Arrays are in C order: the last axis runs fastest. Types under 8 bits
   take a byte an element. */
"""


def write_header(graph: Graph, path: str | os.PathLike[str], title: str) -> int:
    """Write the header; it appears when it is complete. Returns how many arrays it holds.

    Args:
        graph: a graph; operators that stayed float have no multipliers.
        path: the file to write.
        title: what the header is of; in letters, digits and underscores it begins every name.

    Raises:
        CompileFailure: an operator has no kernel under the numerics `fixed`.
        TextFailure: the file cannot be written.
    """
    writer = _Writer(graph, title)
    lines = [line for block in writer.blocks() for line in block]
    with replacing(path) as file:
        file.write("\n".join(lines).encode())
    return writer.arrays


class _Writer:
    """Writes the parts of the header, and counts its arrays."""

    def __init__(self, graph: Graph, title: str) -> None:
        self._graph, self._title = graph, title
        self._prefix = next(iter(identifiers([title]).values()))
        if self._prefix[0].isdigit():
            self._prefix = f"model_{self._prefix}"
        self._names = identifiers(graph.types)
        self.arrays = 0

    def blocks(self) -> Iterator[Sequence[str]]:
        guard = f"{self._prefix.upper()}_H"
        yield [f"#ifndef {guard}", f"#define {guard}", ""]
        title = re.sub(r"[^ -~]|\*/|/\*", "?", self._title)
        yield [_HEAD.format(title=title, version=__version__)]
        yield ["#include <math.h>", "#include <stdint.h>", ""]
        for name, array in self._graph.constants.items():
            if array.dtype.kind in "iufb":
                kind = self._graph.types[name]
                yield self._array(self._named(name), array, kind.dtype, _comment(name, kind))
        for node in self._graph.nodes:
            yield from self._node(node)
        yield [f"#endif /* {guard} */", ""]

    def _named(self, value: str) -> str:
        return f"{self._prefix}_{self._names[value]}"

    def _node(self, node: Node) -> Iterator[Sequence[str]]:
        with recorded() as found:
            if node.op.name.startswith("qnn."):
                node_kernel(self._graph, node, "fixed")
        for name in filter(None, node.results):
            kind = self._graph.types[name]
            yield self._limits(name, node, kind)
        result = next(filter(None, node.results), None)
        if result is not None:
            yield from self._multipliers(self._named(result), found)

    def _limits(self, name: str, node: Node, kind: TensorType) -> Sequence[str]:
        head = [f"/* {_safe(node.op.title)}: {_comment(name, kind)} */"]
        quant = kind.quant
        if quant is None or quant.storage.bits > 16:
            return head
        macro = self._named(name).upper()
        limits = [f"#define {macro}_MIN {quant.qmin}", f"#define {macro}_MAX {quant.qmax}"]
        return [*head, *limits, *self._zero_point(macro, quant), ""]

    def _zero_point(self, macro: str, quant: QuantParams) -> Sequence[str]:
        if quant.per_tensor:
            return [f"#define {macro}_ZERO_POINT {quant.scalar_zero_point}"]
        name = f"{macro.lower()}_zero_point"
        return self._array(name, quant.zero_point, DType.I32, "one for each scale")

    def _multipliers(self, name: str, found: Sequence[Multiplier]) -> Iterator[Sequence[str]]:
        for index, factor in enumerate(found):
            number = f"_{index + 1}" if len(found) > 1 else ""
            error = f"largest relative error {factor.error:.3g}"
            yield self._array(f"{name}_multiplier{number}", factor.m, DType.I32, error)
            yield self._array(f"{name}_shift{number}", factor.shift, DType.I16, "")

    def _array(self, name: str, array: Array, dtype: DType, comment: str) -> Sequence[str]:
        self.arrays += 1
        words = _literals(array, dtype)
        head = [f"/* {comment} */"] if comment else []
        size = max(array.size, 1)
        return [
            *head,
            f"static const {_c_type(array, dtype)} {name}[{size}] = {{",
            *_wrapped(words or ["0"]),
            "};",
            "",
        ]


def _comment(name: str, kind: TensorType) -> str:
    return _safe(f"{name} : {summary(kind)}")


def _safe(text: str) -> str:
    """The text inside a comment, which nothing in it can end."""
    return re.sub(r"[^ -~]", "?", text).replace("*/", "* /").replace("/*", "/ *").rstrip("\\")


def _c_type(array: Array, dtype: DType) -> str:
    if dtype.is_integer:
        return f"{'int' if dtype.signed else 'uint'}{max(dtype.bits, 8)}_t"
    if dtype is DType.BOOL:
        return "uint8_t"
    return "double" if array.dtype.itemsize == 8 else "float"


def _literals(array: Array, dtype: DType) -> list[str]:
    flat = np.ravel(array)
    if dtype.is_integer or dtype is DType.BOOL:
        return [_whole(int(value)) for value in flat.tolist()]
    suffix = "" if array.dtype.itemsize == 8 else "f"
    return [_real(float(value), suffix) for value in flat.tolist()]


def _whole(value: int) -> str:
    """A literal: the least numbers of 32 and 64 bits have none of their own."""
    if value == -(1 << 63):
        return "INT64_MIN"
    if value == -(1 << 31):
        return "INT32_MIN"
    if -(1 << 31) < value < 1 << 31:
        return str(value)
    return f"INT64_C({value})" if value < 1 << 63 else f"UINT64_C({value})"


def _real(value: float, suffix: str) -> str:
    if np.isnan(value):
        return "NAN"
    if np.isinf(value):
        return "INFINITY" if value > 0 else "-INFINITY"
    return value.hex() + suffix


def _wrapped(words: Sequence[str]) -> Iterator[str]:
    line = "   "
    for word in words:
        if len(line) + len(word) + 2 > _WIDTH:
            yield line
            line = "   "
        line += f" {word},"
    yield line
