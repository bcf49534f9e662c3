"""Import and compile against the number of operators: seconds, and how they grow.

Run with `pytest benchmarks/test_scale.py -s --benchmark-only`.
"""

from __future__ import annotations

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

import intonnx
from support.chains import chain


@pytest.mark.parametrize("count", [1000, 3000, 10_000])
def test_import_and_compile(benchmark: BenchmarkFixture, count: int) -> None:
    """10,000 quantized operators take less than 20 seconds on an idle core; growth is linear."""
    model = chain(count)
    intonnx.compile(intonnx.import_model(chain(3)))  # loads every module

    def build() -> intonnx.Executable:
        return intonnx.compile(intonnx.import_model(model))

    executable = benchmark.pedantic(build, rounds=1, iterations=1)
    seconds = benchmark.stats.stats.min
    print(f"\n{count} operators: {seconds:.1f} s, {1000 * seconds / count:.2f} ms each")
    assert intonnx.coverage(executable.graph).float == 0
