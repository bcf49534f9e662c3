"""`intonnx diff`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from intonnx.comparison.diff import Difference, diff
from intonnx.ir.types import Record

from .display import show, show_table
from .files import open_graph
from .progress import working


class Differences(Record):
    """What `intonnx diff --json` prints.

    Attributes:
        first, second: the files.
        differences: in the order of the first model.
    """

    first: str
    second: str
    differences: tuple[Difference, ...]


def diff_models(first: Path, second: Path) -> Differences:
    """Compare two models. Raises ImportFailure or TextFailure, naming the file."""
    with working("importing"):
        a, b = open_graph(first), open_graph(second)
    return Differences(first=str(first), second=str(second), differences=diff(a, b))


def show_differences(found: Differences) -> None:
    """Print a table, and how many differences there are of each kind."""
    if not found.differences:
        show("no difference")
        return
    rows = [(d.kind, d.name, d.first or "-", d.second or "-") for d in found.differences]
    show_table(("", "", found.first, found.second), rows)
    show()
    counts = Counter(d.kind for d in found.differences)
    show(", ".join(f"{kind}: {count}" for kind, count in counts.items()))
