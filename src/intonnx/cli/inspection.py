"""What is integer, what is float and why: the answer of `intonnx inspect`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from intonnx.ir.coverage import NodeCoverage, State, coverage
from intonnx.ir.graph import Graph
from intonnx.ir.metadata import producer_of
from intonnx.ir.ranges import AccumulatorRange, accumulator_ranges
from intonnx.ir.text.types import TypePrinter
from intonnx.ir.types import Record

from .display import percent, show, show_table

_MEANING: dict[State, str] = {
    "integer": "compute on integers",
    "float": "compute on floats",
    "boundary": "values enter or leave the integer part",
    "folded": "done at import, or by a neighbour",
}
_KINDS = 4
"""How many operator types are shown for each reason code."""
_PROVEN = 1 << 28
"""Larger weights, in bytes, are read for the ranges of sums only when these are asked for."""
_DETAILS = 3
"""How many sentences are shown for each reason code; `--json` has them all."""


class Value(Record):
    """An input or an output: its name, and its type as the text form writes it."""

    name: str
    type: str


class Inspection(Record):
    """What `intonnx inspect --json` prints.

    Attributes:
        file: the file as it was given.
        graph: the graph's name.
        producer: the program that wrote the model and its version, or "".
        opsets: opset version by domain; "" is ai.onnx.
        numerics: what a saved graph is compiled to, "" for an ONNX model.
        inputs, outputs: the signature of the graph.
        counts: how many nodes of the model are in each state.
        integer_multiply_accumulate_share: products in integer nodes among all, 0 to 1.
        int32_overflows: accumulating operators whose sums can leave int32, computed wider; None
            where that would read very large weights and ranges were not asked for.
        int16_saturations: accumulating operators whose products CPUs without VNNI can saturate;
            None likewise.
        nodes: the state of every node of the model.
        ranges: what each accumulator can reach; None unless asked for.
    """

    file: str
    graph: str
    producer: str
    opsets: dict[str, int]
    numerics: str
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    counts: dict[State, int]
    integer_multiply_accumulate_share: float
    int32_overflows: int | None
    int16_saturations: int | None
    nodes: tuple[NodeCoverage, ...]
    ranges: tuple[AccumulatorRange, ...] | None


def inspect_graph(graph: Graph, path: Path, *, ranges: bool = False) -> Inspection:
    """Collect the facts about a graph that came from this file, ranges only when asked for."""
    found, metadata = coverage(graph), graph.metadata
    size = sum(array.nbytes for array in graph.constants.values())
    sums = accumulator_ranges(graph) if ranges or size <= _PROVEN else None
    types = TypePrinter(())
    return Inspection(
        file=str(path),
        graph=graph.name,
        producer=producer_of(metadata),
        opsets=metadata.get("opsets", {}),
        numerics=metadata.get("numerics", ""),
        inputs=tuple(Value(name=n, type=types.type(graph.types[n])) for n in graph.inputs),
        outputs=tuple(Value(name=n, type=types.type(graph.types[n])) for n in graph.outputs),
        counts={state: found.count(state) for state in _MEANING},
        integer_multiply_accumulate_share=found.integer_multiply_accumulate_share,
        int32_overflows=None if sums is None else sum(any(entry.int32_overflow) for entry in sums),
        int16_saturations=None
        if sums is None
        else sum(any(entry.int16_saturation) for entry in sums),
        nodes=found.nodes,
        ranges=sums if ranges else None,
    )


def show_inspection(inspection: Inspection) -> None:
    """Print the answer on one screen."""
    show(f"{inspection.file}: {_facts(inspection)}")
    values = [("input", v.name, v.type) for v in inspection.inputs]
    values += [("output", v.name, v.type) for v in inspection.outputs]
    show_table(("", "", ""), values)
    show()
    show_coverage(inspection)


def show_coverage(inspection: Inspection) -> None:
    """Print the counts, and the float operators by reason."""
    counts, total = inspection.counts, len(inspection.nodes)
    rows = [(s, counts[s], percent(counts[s], total), m) for s, m in _MEANING.items()]
    show_table(("nodes", "", "", ""), [*rows, ("all", total, "", "")], right=(1, 2))
    show()
    computing = counts["integer"] + counts["float"]
    share = percent(counts["integer"], computing)
    products = ""
    if any(node.multiply_accumulates for node in inspection.nodes):
        products = f", with {_products(inspection.nodes)} of the multiply-accumulates"
    show(f"{counts['integer']} of {computing} computing nodes are integer ({share}){products}")
    for line in range_lines(inspection):
        show(f"{line} (--ranges)")
    floats = [node for node in inspection.nodes if node.state == "float"]
    if floats:
        show()
        headers = ("float because", "nodes", "operators", "why")
        show_table(headers, _reasons(floats), right=(1,))


def range_lines(inspection: Inspection) -> list[str]:
    """A sentence for each of the two things that can happen to a sum, if it can."""
    lines: list[str] = []
    if inspection.int32_overflows is None:
        lines.append("what sums can reach is not proven: the weights are very large")
    if count := inspection.int32_overflows:
        what = "1 sum" if count == 1 else f"{count} sums"
        lines.append(f"{what} can leave int32: computed wider here")
    if count := inspection.int16_saturations:
        what = "1 operator" if count == 1 else f"{count} operators"
        lines.append(
            f"{what} with products that 8-bit kernels of CPUs without VNNI can saturate at int16: "
            "exact here"
        )
    return lines


def _products(nodes: Sequence[NodeCoverage]) -> str:
    """The share of the multiply-accumulates that integer nodes do."""
    found = {"integer": 0, "float": 0}
    for node in nodes:
        if node.state in found:
            found[node.state] += node.multiply_accumulates
    return percent(found["integer"], sum(found.values()))


def _reasons(floats: list[NodeCoverage]) -> list[tuple[object, ...]]:
    """Rows of reason code, count, operators, sentence; the most frequent reason first."""
    rows: list[tuple[object, ...]] = []
    for code, count in Counter(node.code for node in floats).most_common():
        nodes = [node for node in floats if node.code == code]
        kinds = Counter(node.op for node in nodes).most_common()
        shown = [f"{op} ({n})" if n > 1 else op for op, n in kinds[:_KINDS]]
        shown += [f"{len(kinds) - _KINDS} more kinds"] if len(kinds) > _KINDS else []
        operators = ", ".join(shown)
        details = Counter(node.detail for node in nodes).most_common()
        for index, (detail, times) in enumerate(details[:_DETAILS]):
            head = (code, count, operators) if index == 0 else ("", "", "")
            rows.append((*head, f"{detail} ({times} nodes)" if times > 1 else detail))
        if len(details) > _DETAILS:
            rows.append(("", "", "", f"and {len(details) - _DETAILS} more (all with --json)"))
    return rows


def _facts(inspection: Inspection) -> str:
    opset = inspection.opsets.get("")
    facts = [f"graph {inspection.graph}"] if inspection.graph else []
    facts += [f"by {inspection.producer}"] if inspection.producer else []
    facts += [f"opset {opset}"] if opset else []
    facts += [f"compiled for {inspection.numerics}"] if inspection.numerics else []
    return ", ".join(facts)
