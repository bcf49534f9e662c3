"""s8 codes become u8: x86 has fast kernels for u8 activations only."""

from __future__ import annotations

from dataclasses import replace

import networkx as nx

from intonnx.ir.errors import TypeFailure
from intonnx.ir.graph import Graph, Node
from intonnx.ir.names import Names
from intonnx.ir.op import Op
from intonnx.ir.ops.add import Add
from intonnx.ir.ops.avg_pool import AvgPool
from intonnx.ir.ops.global_avg_pool import GlobalAvgPool
from intonnx.ir.ops.lut import Lut
from intonnx.ir.ops.multiply import Multiply
from intonnx.ir.ops.quantize import Dequantize, Requantize
from intonnx.ir.ops.softmax import Softmax
from intonnx.ir.storage import WEIGHTED, Moved, is_signed, moved_codes, moved_operator, moved_params
from intonnx.ir.types import Array, DType, TensorType, plain, quantized

from .kernel_sums import moved_add, moved_multiply, pool_moves


def unsigned(graph: Graph) -> tuple[Graph, bool]:
    """The s8 activations around convolutions and products as u8: code + 128, zero point + 128.

    Values keep their names. Graph inputs and outputs keep their types, and so do the operands and
    results of operators that are kept as ONNX has them or whose kernel would round differently:
    a requantize, which changes no value, leads to and from them. Constant weights stay.
    """
    if not any(is_signed(kind) for kind in graph.types.values()):
        return graph, False
    work = _Work(graph)
    for node in graph.nodes:
        work.take(node)
    return (work.finish(), True) if work.changed else (graph, False)


class _Work:
    """The graph under change.

    Attributes:
        changed: whether a node was moved.
    """

    def __init__(self, graph: Graph) -> None:
        self.changed = False
        self._graph = graph
        self._names = Names(graph.types)
        self._nodes: list[Node] = []
        self._types: dict[str, TensorType] = {}
        self._constants: dict[str, Array] = {}
        self._unsigned: dict[str, str] = {}
        """The u8 form of a value that was s8."""
        self._signed: set[str] = {*graph.inputs, *graph.constants}
        """Values that are there as they were."""
        self._back: dict[str, str] = {}
        """The s8 form of a value that became u8."""
        self._signed_sums: set[str] = set()
        """Results of operators that stayed although they read s8 codes."""
        self._gainful = _gainful(graph)
        for name in (*graph.inputs, *graph.constants):
            self._types[name] = graph.types[name]
        self._constants.update(graph.constants)

    def take(self, node: Node) -> None:
        """Add a node of the old graph: moved when that can be done, else as it is."""
        kinds = [self._graph.types[name] if name else None for name in node.operands]
        moved = self._moved(node, kinds)
        if moved is None or not self._place(node, moved, kinds):
            self._keep(node)

    def _moved(self, node: Node, kinds: list[TensorType | None]) -> Moved | None:
        results = [self._graph.types[name] for name in node.results if name]
        if not any(map(is_signed, (*kinds, *results))):
            return None
        op = node.op
        # Nothing is won where real values come of codes that are there, and the sums of s8 codes
        # become s8 codes.
        stays = isinstance(op, Dequantize) and node.operands[0] in self._signed
        if stays or (isinstance(op, Requantize) and node.operands[0] in self._signed_sums):
            return None
        if not any(name in self._gainful for name in (*node.operands, *node.results)):
            return None
        table = self._graph.constants.get(node.operands[1]) if isinstance(op, Lut) else None
        found = moved_operator(op, kinds[0] if kinds else None, table)
        if found is None:
            return None
        exact = _same_arithmetic(op, found.op, kinds)
        return None if exact is None else replace(found, op=exact)

    def _place(self, node: Node, moved: Moved, kinds: list[TensorType | None]) -> bool:
        """Write the moved node, unless it has not the types that it should have."""
        results = [self._graph.types[name] if name else None for name in node.results]
        wanted = [_moved_type(kind) for kind in results]
        weights = isinstance(node.op, WEIGHTED) and node.operands[1] in self._graph.constants
        moves = [is_signed(k) and not (i == 1 and weights) for i, k in enumerate(kinds)]
        types = [_moved_type(k) if m else k for k, m in zip(kinds, moves, strict=True)]
        if moved.table is not None:
            assert isinstance(moved.op, Lut)
            types[1] = plain(moved.op.out.storage, moved.table.shape)
        try:
            inferred = moved.op.infer(types)
        except TypeFailure:
            return False
        pairs = zip(inferred, wanted, strict=False)
        if any(w is not None and (f.dtype, f.quant) != (w.dtype, w.quant) for f, w in pairs):
            return False
        operands = [
            self._as_unsigned(name) if move else self._as_signed(name)
            for name, move in zip(node.operands, moves, strict=True)
        ]
        if moved.table is not None:
            operands[1] = self._constant(f"{node.operands[1]}.u8", moved.table, types[1])
        names = [self._result(name, kind) for name, kind in zip(node.results, wanted, strict=True)]
        self._nodes.append(
            replace(node, op=moved.op, operands=tuple(operands), results=tuple(names))
        )
        self.changed = True
        return True

    def _result(self, name: str, kind: TensorType | None) -> str:
        if kind is None:
            return name
        if not is_signed(self._graph.types[name]):
            self._signed.add(name)
            self._types[name] = kind
            return name
        own = self._names.fresh(f"{name}.u8") if name in self._graph.outputs else name
        self._types[own] = kind
        self._unsigned[name] = own
        return own

    def _keep(self, node: Node) -> None:
        reads_signed = any(name and is_signed(self._graph.types[name]) for name in node.operands)
        for name in filter(None, node.results):
            self._types[name] = self._graph.types[name]
            self._signed.add(name)
            if reads_signed and not is_signed(self._graph.types[name]):
                self._signed_sums.add(name)
        operands = tuple(self._as_signed(name) for name in node.operands)
        self._nodes.append(node if operands == node.operands else replace(node, operands=operands))

    def _as_signed(self, name: str) -> str:
        """The value as it was."""
        if not name or name in self._signed:
            return name
        if name not in self._back:
            own = name if name in self._graph.outputs else self._names.fresh(f"{name}.s8")
            self._requantize(self._unsigned[name], own, self._graph.types[name])
            self._back[name] = own
        return self._back[name]

    def _as_unsigned(self, name: str) -> str:
        if name in self._unsigned:
            return self._unsigned[name]
        kind = self._graph.types[name]
        moved = _moved_type(kind)
        assert moved is not None
        array = self._graph.constants.get(name)
        if array is not None:
            own = self._constant(f"{name}.u8", moved_codes(array), moved)
        else:
            own = self._names.fresh(f"{name}.u8")
            self._requantize(name, own, moved)
        self._unsigned[name] = own
        return own

    def _requantize(self, source: str, result: str, kind: TensorType) -> None:
        self._types[result] = kind
        self._nodes.append(Node(Requantize(out=kind.params), (source,), (result,)))

    def _constant(self, name: str, array: Array, kind: TensorType | None) -> str:
        assert kind is not None
        own = self._names.fresh(name)
        self._constants[own], self._types[own] = array, kind
        return own

    def finish(self) -> Graph:
        """The changed graph, without constants that nothing reads any more."""
        for name in self._graph.outputs:
            self._as_signed(name)
        read = {name for node in self._nodes for name in node.operands} | {*self._graph.outputs}
        gone = self._constants.keys() - read
        return replace(
            self._graph,
            nodes=tuple(self._nodes),
            types={name: kind for name, kind in self._types.items() if name not in gone},
            constants={name: a for name, a in self._constants.items() if name not in gone},
        )


def _gainful(graph: Graph) -> set[str]:
    """The values of the regions in which something is multiplied.

    A region is what operators on quantized values connect. Other operators are as fast on s8.
    """
    sets: nx.utils.UnionFind[str] = nx.utils.UnionFind()
    given = {*graph.inputs, *graph.constants, ""}
    products: list[str] = []
    for node in graph.nodes:
        names = [n for n in (*node.operands, *node.results) if n not in given]
        linked = [name for name in names if graph.types[name].quant is not None]
        if linked:
            sets.union(*linked)
        if isinstance(node.op, WEIGHTED) and is_signed(graph.types[node.operands[0]]):
            products += node.results
    roots = {sets[name] for name in products}
    return {name for name in sets if sets[name] in roots}


def _moved_type(kind: TensorType | None) -> TensorType | None:
    return quantized(moved_params(kind.params), kind.shape) if kind and is_signed(kind) else kind


def _same_arithmetic(op: Op, moved: Op, kinds: list[TensorType | None]) -> Op | None:
    """The moved operator, such that its kernel gives the same; None when it does not.

    These have a kernel of their own arithmetic only where operands and result are of one type.
    """
    if not isinstance(op, Add | Multiply | AvgPool | GlobalAvgPool | Softmax):
        return moved
    if not all(map(is_signed, kinds)) or op.out.storage is not DType.I8:
        return None
    a, *others = kinds
    assert a is not None
    if isinstance(op, AvgPool):
        return moved if pool_moves(op, a) else None
    for b in others:
        assert b is not None
        if isinstance(op, Add) and isinstance(moved, Add):
            return moved_add(op, a, b, moved)
        if isinstance(op, Multiply) and isinstance(moved, Multiply):
            return moved_multiply(op, a, b, moved)
    return moved
