"""Compare the integer execution of a graph with every reference there is."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import onnx

from intonnx.ir.errors import IntonnxError
from intonnx.ir.graph import Graph
from intonnx.ir.types import Array, Record
from intonnx.lowering.executable import Executable, compile_graph

from .difference import Difference, Unit, difference
from .operators import Operators, Pair
from .references import Against, Inputs, Plan, Reference, is_float_op, plans
from .statistics import Sums, sums_of
from .ties import ties_among

FLOAT_LIMIT = 1e-3
"""The largest relative difference of an operator that makes floats."""
FLOAT16_LIMIT = 1e-2


class Comparison(Record):
    """The comparison with one reference.

    Attributes:
        reference: which one.
        skipped: why it was not made, or "".
        error: why the reference could not run although it must, or "".
        note: what the reader should know, or "".
        operators: for every compared result of an operator that was fed the reference's values.
        outputs: for every output, each side using its own values.
        passed: whether nothing that was judged is beyond its limit.
    """

    reference: Reference
    passed: bool
    skipped: str = ""
    error: str = ""
    note: str = ""
    operators: tuple[Difference, ...] = ()
    outputs: tuple[Difference, ...] = ()


class Verification(Record):
    """The comparisons with all references, on `samples` inputs each; `passed`: by all of them."""

    passed: bool
    samples: int
    max_quanta: float
    comparisons: tuple[Comparison, ...]


def _nothing(done: int, total: int) -> None:
    """Report to nobody."""


def verify_graph(
    graph: Graph,
    samples: Sequence[Inputs],
    *,
    original: onnx.ModelProto | None = None,
    max_quanta: float = 1,
    against: Collection[Against] = (),
    advance: Callable[[int, int], None] = _nothing,
) -> Verification:
    """Compare the integer execution (numerics "qlinear") with every reference there is.

    Args:
        graph: an imported graph.
        samples: arrays for the inputs of the graph, one mapping for each run.
        original: the model that `graph` was imported from, its external data loaded.
        max_quanta: the limit for one operator.
        against: the references, all that there are unless given.
        advance: called after each comparison of a sample with how many are done, of how many.

    Raises:
        CompileFailure, RunFailure: the graph cannot run at all on these inputs, or onnxruntime is
            asked for and not installed.
    """
    integer = compile_graph(graph, "qlinear")
    operators = Operators(graph)
    references = plans(graph, original, against)
    done, made = 0, list[Comparison]()
    for plan in references:
        findings = _Findings(graph, plan, max_quanta)
        for inputs in samples:
            findings.add(operators, integer, inputs)
            done += 1
            advance(done, len(references) * len(samples))
        made.append(findings.comparison())
    return Verification(
        passed=all(comparison.passed for comparison in made),
        samples=len(samples),
        max_quanta=max_quanta,
        comparisons=tuple(made),
    )


class _Gathered(NamedTuple):
    """What is known of one value, and the sums that it was computed from."""

    difference: Difference
    sums: Sums


class _Findings:
    """The differences from one reference, gathered over the samples."""

    def __init__(self, graph: Graph, plan: Plan, max_quanta: float) -> None:
        self._graph, self._plan, self._max_quanta = graph, plan, max_quanta
        self._operators: dict[str, _Gathered] = {}
        self._outputs: dict[str, _Gathered] = {}
        self._skipped, self._error = plan.skipped, plan.error

    def add(self, operators: Operators, integer: Executable, inputs: Inputs) -> None:
        """Compare one sample. A reference of onnxruntime that cannot run is noted."""
        if self._plan.run is None:
            return
        outputs = integer.run(inputs)
        try:
            reference = self._plan.run(inputs)
        except IntonnxError as error:
            if self._plan.reference == "literal":
                raise
            if self._plan.reference.startswith("original"):
                self._skipped = error.cause
            else:
                self._error = error.cause
            return
        if not self._plan.outputs_only:
            for pair in operators.pairs(inputs, reference):
                self._note(self._operators, pair, self._limit(pair))
        self._add_outputs(outputs, reference)

    def _add_outputs(self, outputs: Mapping[str, Array], reference: Mapping[str, Array]) -> None:
        limit = 0.0 if self._plan.equal_outputs else None
        for name, ours in outputs.items():
            node, theirs = self._graph.producers.get(name), reference.get(name)
            if node is not None and theirs is not None and theirs.dtype == ours.dtype:
                self._note(self._outputs, Pair(name, node, node.label, ours, theirs), limit)

    def _limit(self, pair: Pair) -> Callable[[Unit], float | None]:
        def limit(unit: Unit) -> float | None:
            if pair.name in self._plan.unjudged:
                return None
            in_float = unit == "relative" and is_float_op(pair.node)
            if pair.name in self._plan.exact and not in_float:
                return 0.0
            if unit == "quanta":
                return self._max_quanta
            return FLOAT16_LIMIT if pair.ours.dtype.itemsize == 2 else FLOAT_LIMIT

        return limit

    def _note(
        self,
        into: dict[str, _Gathered],
        pair: Pair,
        limit: Callable[[Unit], float | None] | float | None,
    ) -> None:
        unit, largest, differing = difference(self._graph, pair.node, pair.ours, pair.theirs)
        known, before = into.get(pair.name, (None, Sums()))
        kind = self._graph.types[pair.name]
        sums = before.plus(sums_of(kind, pair.ours, pair.theirs))
        coded = kind.quant is not None and sums.elements > 0
        found = Difference(
            value=pair.name,
            node=pair.label,
            unit=unit,
            largest=max(largest, known.largest if known else 0.0),
            limit=limit(unit) if callable(limit) else limit,
            differing=differing + (known.differing if known else 0),
            elements=pair.ours.size + (known.elements if known else 0),
            ties=self._ties(pair, differing, known),
            sqnr=sums.sqnr,
            cosine=sums.cosine,
            saturation=sums.saturated / sums.elements if coded else None,
        )
        into[pair.name] = _Gathered(found, sums)

    def _ties(self, pair: Pair, differing: int, known: Difference | None) -> int | None:
        """The ties so far; None once a result differs in a way that is not analysed."""
        before = 0 if known is None else known.ties
        if before is None or differing == 0 or pair.ours.shape != pair.theirs.shape:
            return before
        operands, apart = pair.operands(), np.asarray(pair.ours != pair.theirs)
        found = ties_among(self._graph, pair.node, operands, pair.ours, apart)
        return None if found is None else before + found

    def comparison(self) -> Comparison:
        """What was found."""
        operators, outputs = (
            tuple(gathered.difference for gathered in part.values())
            for part in (self._operators, self._outputs)
        )
        return Comparison(
            reference=self._plan.reference,
            passed=not self._error and all(found.passed for found in (*operators, *outputs)),
            skipped=self._skipped,
            error=self._error,
            note=self._plan.note,
            operators=operators,
            outputs=outputs,
        )
