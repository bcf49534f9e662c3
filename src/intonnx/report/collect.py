"""Collect what a report shows: from the graph, and from runs on inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

import numpy as np

from intonnx import __version__
from intonnx.ir.coverage import State, coverage, node_state
from intonnx.ir.errors import CompileFailure, RunFailure
from intonnx.ir.graph import Graph, Node
from intonnx.ir.metadata import producer_of
from intonnx.ir.ranges import accumulator_ranges
from intonnx.ir.reasons import Code
from intonnx.ir.text.attributes import attributes
from intonnx.ir.text.printer import implied_by
from intonnx.ir.text.types import TypePrinter, summary
from intonnx.ir.types import Array, DType, TensorType
from intonnx.lowering.executable import compile_graph
from intonnx.verification.difference import difference
from intonnx.verification.operators import Operators

from .facts import BINS, Error, Facts, Histogram, Operator, Value

_REMEDIES = {code.value: code.remedy for code in Code}
Samples = Sequence[Mapping[str, Array]]


def collect(graph: Graph, file: str, samples: Samples, note: str) -> Facts:
    """The facts about a graph, with histograms and errors from runs on `samples`.

    Where the graph cannot run, they are missing, and `inputs_note` says why.
    """
    traces: list[dict[str, Array]] = []
    errors: dict[str, Error] = {}
    try:
        traces, errors = _run(graph, samples)
    except (CompileFailure, RunFailure) as error:
        note = f"nothing was run: {error}"
    metadata, found = graph.metadata, coverage(graph)
    index = {name: number for number, name in enumerate(graph.types)}
    ranges = {entry.value: entry for entry in accumulator_ranges(graph)}
    return Facts(
        file=file,
        producer=producer_of(metadata),
        opsets=metadata.get("opsets", {}),
        version=__version__,
        inputs_note=note,
        node_share=found.integer_share,
        product_share=found.integer_multiply_accumulate_share,
        counts={state: found.count(state) for state in get_args(State)},
        operators=tuple(_operator(graph, node, index, errors, ranges) for node in graph.nodes),
        values=tuple(_value(graph, name, traces) for name in graph.types),
        nodes=found.nodes,
    )


def _run(graph: Graph, samples: Samples) -> tuple[list[dict[str, Array]], dict[str, Error]]:
    executable, literal = compile_graph(graph, "qlinear"), compile_graph(graph, "qdq")
    operators = Operators(graph)
    traces = [executable.trace(inputs) for inputs in samples]
    found: dict[str, Error] = {}
    counted: dict[str, tuple[int, int]] = {}
    for inputs in samples:
        for pair in operators.pairs(inputs, literal.trace(inputs)):
            unit, largest, differing = difference(graph, pair.node, pair.ours, pair.theirs)
            known, (before, elements) = found.get(pair.name), counted.get(pair.name, (0, 0))
            counted[pair.name] = (before + differing, elements + pair.ours.size)
            found[pair.name] = Error(
                value=pair.name,
                unit=unit,
                largest=max(largest, known.largest if known else 0.0),
                share=(before + differing) / max(elements + pair.ours.size, 1),
            )
    return traces, found


def _operator(
    graph: Graph, node: Node, index: Mapping[str, int], errors: Mapping[str, Error], ranges: Any
) -> Operator:
    state, code, detail = node_state(graph, node)
    kinds = [graph.types.get(name) for name in node.results]
    results = [name for name in node.results if name]
    products = node.op.multiply_accumulates(
        graph.operand_types(node), tuple(graph.types[name] for name in results)
    )
    return Operator(
        title=node.op.title,
        name=node.sources[0].name if node.sources else "",
        state=state,
        code=code,
        detail=detail,
        remedy=_REMEDIES.get(code, ""),
        operands=tuple(index.get(name) for name in node.operands),
        results=tuple(index[name] for name in results),
        attributes=attributes(node.op, implied_by(kinds), TypePrinter(()), lambda _: "graph").strip(
            " {}"
        ),
        multiply_accumulates=products,
        error=next((errors[name] for name in results if name in errors), None),
        range=next((ranges[name] for name in results if name in ranges), None),
    )


def _value(graph: Graph, name: str, traces: Sequence[Mapping[str, Array]]) -> Value:
    kind = graph.types[name]
    scales = kind.quant.scale if kind.quant is not None else None
    if name in graph.constants:
        arrays = [graph.constants[name]]
    else:
        arrays = [trace[name] for trace in traces if name in trace]
    return Value(
        name=name,
        type=summary(kind),
        role=graph.role(name),
        scales=None if scales is None else (float(scales.min()), float(scales.max())),
        histogram=_histogram(kind, arrays),
    )


def _histogram(kind: TensorType, arrays: Sequence[Array]) -> Histogram | None:
    numbers = kind.dtype.is_integer or kind.dtype.is_float
    if not arrays or not numbers or kind.dtype is DType.BF16:
        return None
    flat = np.concatenate([np.ravel(array) for array in arrays])
    if kind.dtype.is_float:
        flat = flat[np.isfinite(flat)].astype(np.float64)
    if flat.size < 2:
        return None
    quant = kind.quant
    if quant is None or quant.storage.bits > 16:
        return _bars(flat, float(flat.min()), float(flat.max()), whole=kind.dtype.is_integer)
    ends = (float(np.mean(flat == quant.qmin)), float(np.mean(flat == quant.qmax)))
    bars = _bars(flat, quant.qmin, quant.qmax, whole=True)
    return bars.model_copy(update={"ends": ends})


def _bars(flat: Array, low: float, high: float, *, whole: bool) -> Histogram:
    """Bars of one width over the range; each of whole numbers covers as many of them."""
    if whole:
        width = float(max(1, -(-int(high - low + 1) // BINS)))
        count = -(-int(high - low + 1) // int(width))
        edges = low - 0.5
    else:
        count, edges = (BINS, low) if high > low else (1, low - 0.5)
        width = (high - low) / BINS or 1.0
    places = np.clip((flat.astype(np.float64) - edges) // width, 0, count - 1).astype(np.int64)
    counts = np.bincount(places, minlength=count)
    return Histogram(low=edges, width=width, counts=tuple(counts.tolist()))
