"""What every test may use: the corpus of real models, and the hypothesis profiles.

`INTONNX_CORPUS` names a folder of models that real tools wrote; tests that read it are skipped
where it is absent. `INTONNX_HYPOTHESIS=thorough` searches longer, and differently on every run.
"""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from support.corpus import corpus_models, find_corpus

__all__ = ["corpus_models"]

settings.register_profile(
    "default",
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "thorough",
    deadline=None,
    max_examples=2000,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile(os.environ.get("INTONNX_HYPOTHESIS", "default"))


_STATES: dict[str, Any] = {}


@pytest.fixture(autouse=True)
def same_numbers(request: pytest.FixtureRequest) -> None:
    """Each test draws the same numbers from its module's `RNG`, whichever tests ran before it."""
    generator = getattr(request.module, "RNG", None)
    if isinstance(generator, np.random.Generator):
        name = request.module.__name__
        state = _STATES.setdefault(name, generator.bit_generator.state)
        generator.bit_generator.state = state


@pytest.fixture(scope="session")
def corpus() -> Path:
    """The folder of the model corpus; skips when there is none."""
    folder = find_corpus()
    if isinstance(folder, str):
        pytest.skip(folder)
    return folder
