"""Where the corpus of real models is: one place for fixtures and for parametrization."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest


def find_corpus() -> Path | str:
    """The corpus folder that `INTONNX_CORPUS` names, or the reason why there is none."""
    value = os.environ.get("INTONNX_CORPUS")
    if not value:
        return "INTONNX_CORPUS is not set: name the folder of the model corpus to run this test"
    folder = Path(value).resolve()
    if not folder.is_dir():
        return f"INTONNX_CORPUS names no folder: {value}"
    return folder


def corpus_models(*globs: str) -> list[Any]:
    """The corpus models that match, as parameters for `pytest.mark.parametrize`.

    The paths are absolute and sorted, each model once, with its path inside the corpus as the
    test id. Without a corpus there is one parameter, which skips and says why. A pattern that
    matches nothing in a corpus that is there raises: a renamed model must not pass unseen.

    Args:
        *globs: patterns relative to the corpus, such as "tf2onnx/*.onnx".
    """
    corpus = find_corpus()
    if isinstance(corpus, str):
        return [pytest.param(None, id="no-corpus", marks=pytest.mark.skip(reason=corpus))]
    matches = {glob: sorted(corpus.glob(glob)) for glob in globs}
    for glob, paths in matches.items():
        if not paths:
            raise pytest.UsageError(f"no model in the corpus matches {glob!r}")
    models = sorted({path for paths in matches.values() for path in paths})
    return [pytest.param(path, id=path.relative_to(corpus).as_posix()) for path in models]
