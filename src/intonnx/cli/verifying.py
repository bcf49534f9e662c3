"""`intonnx verify`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx

from intonnx.ir.errors import IntonnxError
from intonnx.ir.graph import Graph
from intonnx.ir.text.types import dims
from intonnx.ir.types import Array, Record
from intonnx.verification import (
    Comparison,
    Difference,
    Verification,
    random_inputs,
    verify_graph,
)

from .display import share, show, show_table
from .files import about, is_saved_graph, open_graph, read_inputs
from .progress import working

_TITLES = {
    "literal": "literal QDQ meaning",
    "original": "onnxruntime, the model",
    "export": "onnxruntime, our export",
    "optimized": "onnxruntime, our export optimized",
}
_WORST = 10
"""How many operators beyond their limit are shown; `--json` has them all."""


class RandomInputs(Record):
    """How inputs are drawn when none are given."""

    samples: int
    seed: int
    batch: int
    sizes: dict[str, int]


class Report(Verification):
    """What `intonnx verify --json` prints.

    Attributes:
        file: the file as it was given.
        random: how the inputs were drawn; null when they were given.
        note: what sizes symbolic axes of random inputs got, or "".
    """

    file: str
    random: RandomInputs | None
    note: str


def verify_model(
    model: Path, inputs: Sequence[str], random: RandomInputs, max_quanta: float
) -> Report:
    """Verify a model on arrays from files or on random ones. Raises IntonnxError."""
    with working("verifying") as advance, about(model):
        graph = open_graph(model)
        if inputs:
            samples = [read_inputs(graph, inputs)]
        else:
            generator = np.random.default_rng(random.seed)
            samples = [
                random_inputs(graph, generator, batch=random.batch, sizes=random.sizes)
                for _ in range(random.samples)
            ]
        note = "" if inputs else _about_sizes(graph, samples[0])
        original = None if is_saved_graph(model) else onnx.load(model)
        try:
            found = verify_graph(
                graph, samples, original=original, max_quanta=max_quanta, advance=advance
            )
        except IntonnxError as error:
            error.cause += f" ({note})" if note else ""
            raise
    used = None if inputs else random
    return Report(file=str(model), random=used, note=note, **dict(found))


def _about_sizes(graph: Graph, inputs: Mapping[str, Array]) -> str:
    """What sizes symbolic axes got: many models do not work at any."""
    for name, array in inputs.items():
        shape = graph.types[name].shape or ()
        if any(isinstance(size, str) for size in shape[1:]):
            return (
                f"the random input '{name}' has shape {list(array.shape)}, of {dims(shape)}: "
                "set sizes with --dim, or use --input"
            )
    return ""


def show_verification(report: Report) -> None:
    """Print the comparisons and the verdict."""
    given = "the given inputs"
    if report.random is not None:
        given = f"{report.samples} random inputs, seed {report.random.seed}"
    show(f"{report.file}: integer execution on {given}")
    if report.note:
        show(report.note)
    show()
    show("Operator by operator, each fed the values of the reference:")
    rows = [row for made in report.comparisons for row in _operator_rows(made)]
    headers = ("reference", "values", "elements", "differ", "largest", "limit", "")
    show_table(headers, rows, right=(1, 2, 3, 4, 5))
    outputs = [row for made in report.comparisons for row in _output_rows(made)]
    if outputs:
        show()
        show("Outputs, each side with its own values:")
        show_table(
            ("reference", "output", "elements", "differ", "largest", ""), outputs, right=(2, 3, 4)
        )
    _show_remarks(report)
    show()
    show("passed" if report.passed else "FAILED")


def _operator_rows(made: Comparison) -> Iterable[tuple[object, ...]]:
    """One row for each unit and limit that occurs."""
    title = _TITLES[made.reference]
    if made.skipped or made.error:
        yield (title, "", "", "", "", "", (made.skipped and "not run") or "FAILED")
        return
    groups: dict[tuple[object, ...], list[Difference]] = {}
    for found in made.operators:
        groups.setdefault((found.unit, found.limit), []).append(found)
    for (_, limit), members in groups.items():
        worst = max(members, key=lambda found: found.largest)
        differing, elements = _sums(members)
        passed = all(found.passed for found in members)
        yield (
            title,
            len(members),
            elements,
            share(differing, elements),
            _amount(worst, worst.largest),
            "" if limit is None else "equal" if limit == 0 else _amount(worst, worst.limit or 0),
            "not judged" if limit is None else "ok" if passed else "FAILED",
        )


def _output_rows(made: Comparison) -> Iterable[tuple[object, ...]]:
    for found in made.outputs:
        verdict = "" if found.limit is None else "ok" if found.passed else "FAILED"
        yield (
            _TITLES[made.reference],
            found.value,
            found.elements,
            share(found.differing, found.elements),
            _amount(found, found.largest),
            verdict,
        )


def _show_remarks(report: Report) -> None:
    remarks = [
        f"{_TITLES[made.reference]}: {remark}"
        for made in report.comparisons
        for remark in (made.skipped, made.error, made.note)
        if remark
    ]
    if remarks:
        show()
    for remark in remarks:
        show(remark)
    beyond = [
        (_TITLES[made.reference], found.node, found.value, _amount(found, found.largest))
        for made in report.comparisons
        for found in made.operators
        if not found.passed
    ]
    if beyond:
        show()
        show(f"Beyond the limit: {len(beyond)} values, the first in graph order:")
        show_table(("reference", "node", "value", "largest"), beyond[:_WORST], right=(3,))


def _sums(members: Iterable[Difference]) -> tuple[int, int]:
    members = list(members)
    return sum(found.differing for found in members), sum(found.elements for found in members)


def _amount(found: Difference, amount: float) -> str:
    if found.unit == "quanta":
        return f"{amount:g} {'quantum' if amount == 1 else 'quanta'}"
    return "0" if amount == 0 else f"{amount:.1e} of max"
