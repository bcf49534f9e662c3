"""Runs whose operators are joined: equal to the trace, to themselves in threads and in parts."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import intonnx
from intonnx.ir.types import Array
from intonnx.lowering.fusion import chains

DEMO = Path(intonnx.__file__).parent / "demo_data"


@pytest.fixture(scope="module")
def images() -> Array:
    with np.load(DEMO / "digits_test.npz") as archive:
        chosen: Array = archive["images"][:24]
    return chosen


@pytest.fixture(scope="module", params=["qlinear", "qdq", "fixed"])
def executable(request: pytest.FixtureRequest) -> intonnx.Executable:
    return intonnx.compile(intonnx.import_model(DEMO / "digits_qdq.onnx"), request.param)


def test_a_run_is_the_trace(executable: intonnx.Executable, images: Array) -> None:
    """The trace computes operator by operator."""
    graph = executable.graph
    assert any(len(chain) > 1 for chain in chains(graph))
    found, traced = executable.run({"x": images}), executable.trace({"x": images})
    assert set(traced) >= {result for node in graph.nodes for result in node.results}
    for name, array in found.items():
        np.testing.assert_array_equal(array, traced[name])


def test_eight_threads_give_one_result(executable: intonnx.Executable, images: Array) -> None:
    parts = [images[i % 3 :: 3] for i in range(24)]
    alone = [executable.run({"x": part}) for part in parts[:3]]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda part: executable.run({"x": part}), parts))
    for i, found in enumerate(together):
        for name, array in found.items():
            np.testing.assert_array_equal(array, alone[i % 3][name])


def test_an_image_does_not_depend_on_its_batch(
    executable: intonnx.Executable, images: Array
) -> None:
    whole = executable.run({"x": images})
    single = [executable.run({"x": image[None]}) for image in images]
    for name, array in whole.items():
        np.testing.assert_array_equal(array, np.concatenate([part[name] for part in single]))
