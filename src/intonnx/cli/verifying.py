"""`intonnx verify`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx

from intonnx.ir.errors import IntonnxError, RunFailure
from intonnx.ir.graph import Graph
from intonnx.ir.text.types import dims
from intonnx.ir.types import Array, Record
from intonnx.verification import (
    Against,
    Comparison,
    Difference,
    FloatComparison,
    Verification,
    compare_with_float,
    random_inputs,
    verify_graph,
)

from .display import share, show, show_table
from .files import about, is_saved_graph, open_graph, read_inputs
from .layers import show_layers
from .progress import working
from .samples import read_samples

_TITLES = {
    "literal": "literal QDQ meaning",
    "original": "onnxruntime, the model",
    "original optimized": "onnxruntime, the model optimized",
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
        data: the folder of the samples, or null.
        note: what sizes symbolic axes of random inputs got, or "".
        float_file: the float model that it was compared with, or null.
        layers: that comparison, or null.
    """

    file: str
    random: RandomInputs | None
    data: str | None
    note: str
    float_file: str | None
    layers: FloatComparison | None


def verify_model(
    model: Path,
    inputs: Sequence[str],
    random: RandomInputs,
    max_quanta: float,
    against: Sequence[str] = (),
    data: Path | None = None,
) -> Report:
    """Verify a model on arrays from files, on a folder of samples or on random inputs.

    `against` holds "qdq", "onnxruntime" and the path of one float model, all but that unless given.
    Raises IntonnxError.
    """
    references, float_file = _references(against)
    with working("verifying") as advance, about(model):
        graph = open_graph(model)
        samples = _samples(graph, inputs, random, data)
        given = bool(inputs) or data is not None
        note = "" if given else _about_sizes(graph, samples[0])
        original = None if is_saved_graph(model) else onnx.load(model)
        try:
            found = verify_graph(
                graph,
                samples,
                original=original,
                max_quanta=max_quanta,
                against=references,
                advance=advance,
            )
        except IntonnxError as error:
            error.cause += f" ({note})" if note else ""
            raise
        layers = None
        if float_file is not None:
            layers = _layers(graph, original, float_file, samples)
    return Report(
        file=str(model),
        random=None if given else random,
        data=None if data is None else str(data),
        note=note,
        float_file=None if float_file is None else str(float_file),
        layers=layers,
        **dict(found),
    )


def _references(against: Sequence[str]) -> tuple[list[Against], Path | None]:
    """The references that `--against` names, and the float model."""
    named = {"qdq": "qdq", "onnxruntime": "onnxruntime"}
    files = [Path(text) for text in against if text not in named]
    if len(files) > 1:
        raise RunFailure(f"--against names two float models: '{files[0]}' and '{files[1]}'")
    references: list[Against] = []
    if "qdq" in against:
        references.append("qdq")
    if "onnxruntime" in against:
        references.append("onnxruntime")
    return references, files[0] if files else None


def _samples(
    graph: Graph, inputs: Sequence[str], random: RandomInputs, data: Path | None
) -> list[Mapping[str, Array]]:
    if inputs:
        return [read_inputs(graph, inputs)]
    if data is not None:
        return list(read_samples(graph, data))
    generator = np.random.default_rng(random.seed)
    return [
        random_inputs(graph, generator, batch=random.batch, sizes=random.sizes)
        for _ in range(random.samples)
    ]


def _layers(
    graph: Graph,
    original: onnx.ModelProto | None,
    float_file: Path,
    samples: Sequence[Mapping[str, Array]],
) -> FloatComparison:
    with about(float_file):
        float_graph = open_graph(float_file)
        if is_saved_graph(float_file):
            raise RunFailure("the float model must be an ONNX model, not a saved graph")
        float_model = onnx.load(float_file)
    return compare_with_float(graph, original, float_graph, float_model, samples)


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
    elif report.data is not None:
        given = f"the {report.samples} samples in {report.data}"
    show(f"{report.file}: integer execution on {given}")
    if report.note:
        show(report.note)
    show()
    show("Operator by operator, each fed the values of the reference:")
    rows = [row for made in report.comparisons for row in _operator_rows(made)]
    headers = ("reference", "values", "elements", "differ", "ties", "largest", "limit", "")
    show_table(headers, rows, right=(1, 2, 3, 4, 5, 6))
    outputs = [row for made in report.comparisons for row in _output_rows(made)]
    if outputs:
        show()
        show("Outputs, each side with its own values:")
        show_table(
            ("reference", "output", "elements", "differ", "largest", ""), outputs, right=(2, 3, 4)
        )
    _show_remarks(report)
    if report.layers is not None:
        show()
        show_layers(report.layers, report.float_file or "")
    show()
    show("passed" if report.passed else "FAILED")


def _operator_rows(made: Comparison) -> Iterable[tuple[object, ...]]:
    """One row for each unit and limit that occurs."""
    title = _TITLES[made.reference]
    if made.skipped or made.error:
        yield (title, "", "", "", "", "", "", (made.skipped and "not run") or "FAILED")
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
            _ties(members),
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
        for remark in (made.skipped, made.error, made.note, _parting(made))
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


def _ties(members: Iterable[Difference]) -> str:
    """How many of the elements that differ are ties, of those where that is known."""
    known = [found for found in members if found.differing and found.ties is not None]
    return (
        f"{sum(f.ties or 0 for f in known)} of {sum(f.differing for f in known)}" if known else ""
    )


def show_values(report: Report) -> None:
    """Print every value that was compared, in graph order, for each reference."""
    headers = ("value", "differ", "ties", "largest", "SQNR", "cosine", "saturated")
    for made in report.comparisons:
        if made.operators:
            show()
            show(f"{_TITLES[made.reference]}:")
            show_table(
                headers, [_value_row(found) for found in made.operators], right=(1, 2, 3, 4, 5, 6)
            )


def _value_row(found: Difference) -> tuple[object, ...]:
    return (
        found.value,
        share(found.differing, found.elements),
        "" if not found.differing or found.ties is None else found.ties,
        _amount(found, found.largest),
        "" if found.sqnr is None else f"{found.sqnr:.1f} dB",
        "" if found.cosine is None else f"{found.cosine:.6f}",
        "" if found.saturation is None else f"{found.saturation:.1%}",
    )


def _parting(made: Comparison) -> str:
    """The first value in graph order where both sides part, or ""."""
    first = next((found for found in made.operators if found.differing), None)
    if first is None:
        return ""
    where = f"they part first at '{first.value}', in {first.differing} of {first.elements} elements"
    if first.ties is None:
        return where
    return f"{where}, {'all' if first.ties == first.differing else first.ties} of them ties"


def _sums(members: Iterable[Difference]) -> tuple[int, int]:
    members = list(members)
    return sum(found.differing for found in members), sum(found.elements for found in members)


def _amount(found: Difference, amount: float) -> str:
    if found.unit == "quanta":
        return f"{amount:g} {'quantum' if amount == 1 else 'quanta'}"
    return "0" if amount == 0 else f"{amount:.1e} of max"
