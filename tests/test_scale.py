"""Work grows with the number of operators, not with its square: counted in calls, not in time."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType

import pytest

import intonnx
from support.chains import chain

COUNTS = (60, 120, 240)


def calls(work: Callable[[], object]) -> int:
    """How many functions, of Python and of C, are called."""
    count = 0

    def tick(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(tick)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


STAGES: dict[str, Callable[[intonnx.Graph], object]] = {
    "compile": intonnx.compile,
    "export": intonnx.to_onnx,
    "print": str,
    "coverage": intonnx.coverage,
    "ranges": intonnx.accumulator_ranges,
}


def is_linear(counts: list[int]) -> bool:
    """Whether twice as many operators more are twice as many calls more, or hardly above."""
    first, second = counts[1] - counts[0], counts[2] - counts[1]
    return second <= 2.05 * first


def test_import_grows_linearly() -> None:
    models = [chain(count) for count in COUNTS]
    intonnx.import_model(models[-1])  # what is done once only
    counts = [calls(lambda model=model: intonnx.import_model(model)) for model in models]
    assert is_linear(counts), counts


@pytest.mark.parametrize("stage", STAGES)
def test_later_stages_grow_linearly(stage: str) -> None:
    graphs = [intonnx.import_model(chain(count)) for count in COUNTS]
    STAGES[stage](graphs[-1])  # what is done once only
    counts = [calls(lambda graph=graph: STAGES[stage](graph)) for graph in graphs]
    assert is_linear(counts), counts


def test_equal_tables_are_built_once() -> None:
    """A chain of one scale compiles with one table of pairs, however long it is."""
    from intonnx.lowering.integer import _binary

    build = chain(9, distinct=False)
    intonnx.compile(intonnx.import_model(build))
    before = _binary._shared_table.cache_info().misses
    intonnx.compile(intonnx.import_model(chain(60, distinct=False)))
    assert _binary._shared_table.cache_info().misses == before
