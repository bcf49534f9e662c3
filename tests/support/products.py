"""A model of convolutions or matrix products through every wing, held against onnxruntime."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import onnx

import intonnx
from intonnx.ir.types import DType, QuantParams, TensorType, quantized
from support.models import Array
from support.runtime import run_onnxruntime
from support.wings import Arrays, apart

RUNTIMES: tuple[Literal["onnxruntime", "standard"], ...] = ("onnxruntime", "standard")
PER_CHANNEL = np.linspace(0.001, 0.02, 6)


def q(
    shape: tuple[int | str, ...] | None,
    scale: Any = 0.5,
    axis: int | None = None,
    storage: DType = DType.U8,
) -> TensorType:
    """A type of codes with one scale, or with several along an axis; the zero points are 0."""
    scales = np.asarray(scale, np.float32)
    params = QuantParams(
        storage=storage, scale=scales, zero_point=np.zeros(scales.shape), axis=axis
    )
    return quantized(params, shape)


def check_product(
    model: onnx.ModelProto,
    inputs: Arrays,
    *,
    quanta: int = 1,
    floats: int = 0,
    exact: bool = True,
    optimized: bool = True,
) -> intonnx.Graph:
    """Import a model; every lowering of it gives what onnxruntime gives without optimization.

    Sums of floats have no defined order, so codes may be `quanta` apart from the literal model, and
    float results within a few units in the last place of the largest. With `exact` the integer
    exports for both runtimes give what our integers give, bit for bit, without optimization and,
    with `optimized`, with it. What was exported imports again and computes the same.
    """
    graph = intonnx.import_model(model)
    assert intonnx.coverage(graph).float == floats, intonnx.coverage(graph).nodes
    wanted = run_onnxruntime(model, inputs, optimized=False)
    integer = intonnx.compile(graph).run(inputs)
    near(integer, wanted, quanta)
    near(intonnx.compile(graph, numerics="qdq").run(inputs), wanted, quanta)
    for runtime in RUNTIMES:
        exported = intonnx.to_onnx(graph, runtime=runtime)
        domains = {node.domain for node in exported.graph.node}
        assert runtime == "onnxruntime" or domains == {""}
        levels = (False, True) if optimized else (False,)
        for level in levels:
            # What is written for onnxruntime is exact as it is, on every CPU.
            helped = runtime == "standard"
            found = run_onnxruntime(exported, inputs, optimized=level, exact=helped)
            (apart if exact else near)(found, integer, 0 if exact else quanta)
        apart(intonnx.compile(intonnx.import_model(exported)).run(inputs), integer, 0)
    literal = intonnx.to_onnx(graph, form="qdq")
    near(run_onnxruntime(literal, inputs, optimized=False), wanted, quanta)
    return graph


def near(found: Arrays, wanted: Arrays, quanta: int) -> None:
    """Assert equal names, types and shapes; codes at most `quanta` apart, floats nearly equal."""
    codes = {name: array for name, array in found.items() if array.dtype.kind in "iu"}
    apart(codes, {name: wanted[name] for name in codes}, quanta)
    assert list(found) == list(wanted)
    for name in found.keys() - codes.keys():
        assert (found[name].dtype, found[name].shape) == (wanted[name].dtype, wanted[name].shape)
        size = float(np.max(np.abs(wanted[name].astype(np.float64)), initial=0))
        unit = 2e-3 if found[name].dtype == np.float16 else 1e-5
        np.testing.assert_allclose(found[name], wanted[name], rtol=unit, atol=unit * size)


def ends(rng: np.random.Generator, shape: tuple[int, ...], dtype: type[np.integer]) -> Array:
    """Codes of which half are at the ends of their range."""
    info = np.iinfo(dtype)
    codes = rng.integers(info.min, info.max + 1, shape)
    extreme = rng.choice([info.min, info.max], shape)
    return np.where(rng.random(shape) < 0.5, codes, extreme).astype(dtype)
