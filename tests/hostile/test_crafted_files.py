"""Attacks on the importer and on the reader of saved graphs; see `crafted`."""

from __future__ import annotations

from pathlib import Path

from hostile import bases
from hostile.cases import Outcome
from hostile.crafted import crafted_graphs, crafted_models
from hostile.pool import Pool


def _check(outcomes: list[Outcome]) -> None:
    wrong = [outcome for outcome in outcomes if outcome.kind == "wrong"]
    assert not wrong, "\n".join(f"{o.case}: {o.detail}" for o in wrong)


def test_models(tmp_path: Path) -> None:
    with Pool(tmp_path) as pool:
        _check(list(pool.outcomes(crafted_models())))


def test_external_data_elsewhere_is_refused(tmp_path: Path) -> None:
    cases = [case for case in crafted_models() if case.name.startswith("external")]
    with Pool(tmp_path) as pool:
        outcomes = list(pool.outcomes(cases))
    assert {o.case for o in outcomes if o.kind != "refused"} == set()


def test_saved_graphs(tmp_path: Path) -> None:
    _, saved = bases.saved(0, tmp_path)
    with Pool(tmp_path) as pool:
        outcomes = list(pool.outcomes(crafted_graphs(saved)))
    _check(outcomes)
    assert {o.case for o in outcomes if o.kind == "result"} == set()
