"""A user's program, to be type-checked against the installed wheel alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import intonnx


def classify(path: Path, images: np.ndarray[tuple[int, ...], np.dtype[np.float32]]) -> list[int]:
    """Import, look, run, and export a model."""
    graph: intonnx.Graph = intonnx.import_model(path)
    report = intonnx.coverage(graph)
    counts: tuple[int, int] = report.integer, report.float
    if counts[1]:
        raise ValueError(f"{counts[1]} operators are float")
    executable = intonnx.compile(graph, numerics="qlinear")
    scores = executable.run({"x": images})["y"]
    model = intonnx.to_onnx(graph, form="qdq", runtime="onnxruntime")
    names: list[str] = [node.name for node in model.graph.node]
    return [int(index) for index in scores.argmax(axis=1)] + [len(names)]
