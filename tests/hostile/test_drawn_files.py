"""Damaged files of every kind: a right result or one error of the product, never anything else.

Each goes through import, report, text, compile, run and export in a child under 2 GB and 10 s.
The ordinary run takes a few hundred; ten thousand, other ones each time, with

    INTONNX_HOSTILE=10000 pytest -q tests/hostile

and `INTONNX_HOSTILE_SEED=N` where to start.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from hostile.cases import Case
from hostile.drawn import model_case, saved_case, text_case
from hostile.pool import Pool

COUNT = int(os.environ.get("INTONNX_HOSTILE", "300"))
FIRST = int(os.environ.get("INTONNX_HOSTILE_SEED", "0"))


@pytest.mark.parametrize(("kind", "share"), [("model", 0.7), ("text", 0.15), ("saved", 0.15)])
def test_damaged_files(kind: str, share: float, tmp_path: Path) -> None:
    base_folder = tmp_path / "bases"
    base_folder.mkdir()
    make: dict[str, Callable[[int], Case]] = {
        "model": model_case,
        "text": text_case,
        "saved": lambda seed: saved_case(seed, base_folder),
    }
    cases = (make[kind](FIRST + index) for index in range(round(COUNT * share)))
    with Pool(tmp_path) as pool:
        outcomes = list(pool.outcomes(cases))
    wrong = [outcome for outcome in outcomes if outcome.kind == "wrong"]
    assert not wrong, "\n".join(f"{o.case}: {o.detail}" for o in wrong)
    kinds = {outcome.kind for outcome in outcomes}
    assert kinds == {"result", "refused"} or len(outcomes) < 20
