"""MLIR text: read by MLIR itself, with its quant dialect."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import intonnx
from boundaries.elementwise import ELEMENTWISE
from boundaries.matrix import MATRIX
from boundaries.movers import MOVERS
from boundaries.patterns import Pattern
from boundaries.pools import POOLS
from intonnx.ir.mlir import mlir_quant, mlir_type, print_mlir
from intonnx.ir.types import DType, QuantParams, TensorType, quantized
from support.corpus import corpus_models


@pytest.fixture(scope="session")
def mlir() -> tuple[Any, Any]:
    """MLIR's Python bindings and a context that knows the quant dialect."""
    ir, jax, stablehlo = (
        pytest.importorskip(f"jaxlib.mlir.{name}", reason="jaxlib is of the development group")
        for name in ("ir", "_mlir_libs._jax_mlir_ext", "dialects.stablehlo")
    )
    registry, context = ir.DialectRegistry(), ir.Context()
    jax.register_dialects(registry)
    context.append_dialect_registry(registry)
    stablehlo.register_dialect(context)
    context.load_all_available_dialects()
    context.allow_unregistered_dialects = True
    return ir, context


@pytest.fixture(scope="session")
def check(mlir: tuple[Any, Any]) -> Callable[[intonnx.Graph], str]:
    """Parse and verify a graph's text with MLIR; gives what MLIR prints of it."""
    ir, context = mlir

    def run(graph: intonnx.Graph) -> str:
        module = ir.Module.parse(print_mlir(graph), context)
        assert module.operation.verify()
        (function,) = module.body.operations
        body = list(function.regions[0].blocks[0].operations)
        assert len(body) == len(graph.constants) + len(graph.nodes) + 1
        return str(module)

    return run


@pytest.mark.parametrize(
    "pattern", [*MATRIX, *ELEMENTWISE, *POOLS, *MOVERS], ids=lambda pattern: pattern.name
)
def test_mlir_reads_every_boundary(check: Callable[[intonnx.Graph], str], pattern: Pattern) -> None:
    model, _ = pattern.draw(np.uint8, True, 0)
    check(intonnx.import_model(model))


@pytest.mark.parametrize("path", corpus_models("ort_testdata/*.onnx", "brevitas/*.onnx"))
def test_mlir_reads_real_models(check: Callable[[intonnx.Graph], str], path: Any) -> None:
    try:
        graph = intonnx.import_model(path)
    except intonnx.ImportFailure:
        pytest.skip("one of the models that are refused")
    check(graph)


def params(**changes: Any) -> QuantParams:
    given: dict[str, Any] = {"storage": DType.U8, "scale": 0.5, "zero_point": 3, **changes}
    return QuantParams(**given)


PER_AXIS = {"storage": DType.I8, "scale": [0.1, 2.0, 1e-30], "zero_point": [0, -3, 4]}
SPELLINGS = [
    (params(), "!quant.uniform<u8:f32, 5.0e-01:3>"),
    (params(zero_point=0), "!quant.uniform<u8:f32, 5.0e-01>"),
    (params(storage=DType.U4, low=1, high=14), "!quant.uniform<u4<1:14>:f32, 5.0e-01:3>"),
    (params(storage=DType.I16, expressed=DType.F16), "!quant.uniform<i16:f16, 5.0e-01:3>"),
    (params(**PER_AXIS, axis=1), "!quant.uniform<i8:f32:1, {1.0e-01, 2.0e+00:-3, 1.0e-30:4}>"),
    (
        params(scale=[[0.5, 2.0]], zero_point=[[0, 7]], axis=0, block=32),
        "!quant.uniform<u8:f32:{0:32,1:1}, {{5.0e-01, 2.0e+00:7}}>",
    ),
]


@pytest.mark.parametrize(("quant", "spelling"), SPELLINGS, ids=[text for _, text in SPELLINGS])
def test_quantized_types(mlir: tuple[Any, Any], quant: QuantParams, spelling: str) -> None:
    ir, context = mlir
    assert mlir_quant(quant) == spelling
    assert ir.Type.parse(spelling, context) is not None


@pytest.mark.parametrize("dtype", [dtype for dtype in DType if dtype is not DType.CONTAINER])
def test_element_types(mlir: tuple[Any, Any], dtype: DType) -> None:
    ir, context = mlir
    text = mlir_type(TensorType(dtype=dtype, shape=(2, "N", "?")))
    assert text.startswith("tensor<2x?x?x")
    assert ir.Type.parse(text, context) is not None


def test_types_without_a_rank_and_containers(mlir: tuple[Any, Any]) -> None:
    ir, context = mlir
    texts = [
        mlir_type(quantized(params(), None)),
        mlir_type(TensorType(dtype=DType.CONTAINER, shape=None, container="seq(tensor(float))")),
    ]
    assert texts[0] == "tensor<*x!quant.uniform<u8:f32, 5.0e-01:3>>"
    for text in texts:
        assert ir.Type.parse(text, context) is not None
