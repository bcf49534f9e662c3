"""Codes that an export moved up by 128, moved down again."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import replace

import networkx as nx
import numpy as np

from intonnx.ir.changes import Stored
from intonnx.ir.errors import IntonnxError
from intonnx.ir.graph import Graph, Node
from intonnx.ir.ops.add import Add
from intonnx.ir.ops.lut import Lut
from intonnx.ir.ops.storage_cast import StorageCast
from intonnx.ir.storage import (
    MOVABLE,
    OFFSET,
    WEIGHTED,
    shifted_operator,
    signed_codes,
    signed_params,
)
from intonnx.ir.types import DType, TensorType, quantized


class Shift:
    """Values whose codes go down by 128, together with those that have their types from them."""

    def __init__(self, graph: Graph, storage: Mapping[str, Stored]) -> None:
        self._graph = graph
        self._ends = {*graph.inputs, *graph.outputs}
        self._together: nx.Graph[str] = nx.Graph()
        self._together.add_nodes_from(
            name for name, old in storage.items()
            if name in graph.types and self._shifts(name, old)
        )  # fmt: skip
        wanted = set(self._together)
        for node in graph.nodes:
            self._together.add_edges_from(_linked(node, graph, wanted))
        self.names = self._with_companions(wanted)
        self._types = dict(graph.types)
        self._constants = dict(graph.constants)

    def _shifts(self, name: str, old: Stored) -> bool:
        """Whether a value is an activation whose codes go down by 128, or a constant beside one."""
        weights = name in self._graph.constants and all(
            isinstance(node.op, WEIGHTED) and node.operands.count(name) == 1
            and node.operands[1] == name
            for node in self._graph.users.get(name, ())
        )  # fmt: skip
        return old.storage is DType.I8 and not weights and self._may_shift(name)

    def _may_shift(self, name: str) -> bool:
        """Whether a value is quantized in u8 with one zero point, and no caller sees its type."""
        kind = self._graph.types[name]
        u8 = kind.dtype is DType.U8 and kind.quant is not None and kind.params.per_tensor
        return u8 and name not in self._ends

    def fixed(self) -> set[str]:
        """The values that cannot shift, with all those that go together with them."""
        stuck = {name for name in self.names if not self._may_shift(name)}
        for name in self.names - stuck:
            self._shift(name)
        operators: list[Node] = []
        for node in self._graph.nodes:
            touched = self.names.intersection((*node.operands, *node.results))
            moved = self._operator(node) if touched else node
            if moved is None or (touched and not self._fits(moved)):
                stuck |= touched
            else:
                operators.append(moved)
        self._operators = tuple(operators)
        return self._with_companions(stuck)

    def _with_companions(self, names: set[str]) -> set[str]:
        """These values, and all that go together with one of them."""
        found: set[str] = set()
        for component in nx.connected_components(self._together):
            if not names.isdisjoint(component):
                found |= component
        return found

    def graph(self) -> Graph:
        """The graph with these codes in their types, when none of them is fixed."""
        return replace(
            self._graph, nodes=self._operators, types=self._types, constants=self._constants
        )

    def _shift(self, name: str) -> None:
        kind = self._types[name]
        self._types[name] = quantized(signed_params(kind.params), kind.shape)
        if name in self._constants:
            self._constants[name] = signed_codes(self._constants[name])

    def _operator(self, node: Node) -> Node | None:
        """The operator on other codes; None where it knows none."""
        operands = list(node.operands)
        reads = operands[0] in self.names
        makes = any(name in self.names for name in node.results)
        table = self._graph.constants.get(operands[1]) if isinstance(node.op, Lut) else None
        found = shifted_operator(node.op, reads, makes, table, -OFFSET)
        if found is None:
            return None
        if found.table is not None:
            name = f"{node.results[0]}.table"
            while name in self._types:
                name += ".s8"
            self._constants[name] = found.table
            dtype = DType.I8 if found.table.dtype == np.int8 else DType.U8
            self._types[name] = TensorType(dtype=dtype, shape=found.table.shape)
            operands[1] = name
        return replace(node, op=found.op, operands=tuple(operands))

    def _fits(self, node: Node) -> bool:
        """Whether the operator gives the types that its results should have."""
        try:
            kinds = node.op.infer([self._types[name] if name else None for name in node.operands])
        except IntonnxError:
            return False
        wanted = [self._types[name] if name else None for name in node.results]
        return all(
            want is None or (kind.dtype, kind.quant) == (want.dtype, want.quant)
            for kind, want in zip(kinds, wanted, strict=False)
        )


def _linked(node: Node, graph: Graph, wanted: set[str]) -> Iterator[tuple[str, str]]:
    """Pairs of values whose codes an operator takes as of one type, or that shift with another."""
    op, values = node.op, (*node.operands, *node.results)
    if isinstance(op, Add):
        # Its arithmetic is on raw codes: the export moved all of them, or none.
        together = [name for name in values if name in wanted]
    elif isinstance(op, StorageCast) and op.out is not None:
        # The same codes: narrower ranges of the export come back as casts.
        together = [name for name in values if _is_u8(graph.types[name])]
    elif getattr(op, "out", None) is None and type(op).__module__ in MOVABLE:
        made = [graph.types[name].quant for name in node.results if name]
        together = [
            name for name in values
            if name and _is_u8(graph.types[name]) and graph.types[name].quant in made
        ]  # fmt: skip
    else:
        return
    yield from itertools.pairwise(together)


def _is_u8(kind: TensorType | None) -> bool:
    return kind is not None and kind.quant is not None and kind.dtype is DType.U8
