"""`intonnx report`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from intonnx.report.collect import collect
from intonnx.report.page import write_report
from intonnx.verification import random_inputs

from .display import show
from .files import about, open_graph, read_inputs
from .progress import working


def make_report(model: Path, output: Path, inputs: Sequence[str], samples: int, seed: int) -> None:
    """Write the page about a model. Raises IntonnxError; then there is no new file."""
    with working("reporting"), about(model):
        graph = open_graph(model)
        if inputs:
            drawn, note = [read_inputs(graph, inputs)], "the given inputs"
        else:
            generator = np.random.default_rng(seed)
            drawn = [random_inputs(graph, generator) for _ in range(samples)]
            note = f"{samples} random input{'s' if samples > 1 else ''}, seed {seed}"
        facts = collect(graph, model.name, drawn, note)
        write_report(facts, output)
    show(f"{output}: {len(facts.operators)} operators, {len(facts.values)} values")
