"""Operators that only move codes: every storage type and both kinds of graph input at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import onnx

import intonnx
from intonnx.ir.graph import Node
from intonnx.ir.op import Op
from intonnx.ir.types import DType, QuantParams, TensorType, dtype_of, plain, quantized
from intonnx.lowering import integer
from intonnx.lowering.integer.kernel import Context, kernels
from support.models import (
    MICROSOFT,
    Array,
    Builder,
    Fed,
    Held,
    Operand,
    Params,
    qdq_model,
    run_inputs,
    s8,
    s16,
    u8,
    u16,
)
from support.runtime import run_onnxruntime
from support.wings import apart, check_model

CASES: list[tuple[Params, Params, bool]] = [
    (u8(0.02, 114), u8(0.02, 114), False),
    (u8(0.5, 0), u8(0.3, 255), True),
    (s8(0.5, -128), s8(0.25, 127), False),
    (s8(1 / 3, None), s8(1 / 3, 0), True),
    (u16(0.001, 65535), u16(0.001, 65535), True),
    (s16(0.1, 0), u8(0.7, 3), False),
]
"""Parameters before and after, and whether the graph input is quantized."""


def check_mover(
    op_type: str,
    shape: Sequence[int],
    others: Sequence[Any] = (),
    *,
    opset: int = 21,
    results: int = 1,
    kernel: bool = True,
    **attributes: Any,
) -> None:
    """Hold DQ -> op -> Q against onnxruntime without a quantum of difference, for all of CASES.

    Equal parameters leave one operator, others one more requantize. `others` are constant inputs.
    """
    # The 16-bit codes of com.microsoft are known at every opset.
    domain = "" if opset >= 21 else MICROSOFT
    for before, after, quantized_input in CASES:
        if domain and before.zero_point is None:
            before = replace(before, zero_point=0)
        inputs: list[Operand] = [Fed("x", shape, before, quantized_input)]
        inputs += [None if other is None else Held(np.asarray(other)) for other in others]
        model = qdq_model(op_type, inputs, out=after, attrs=attributes, opset=opset,
                          results=results, qdq_domain=domain)  # fmt: skip
        check_same(model)


def check_same(model: onnx.ModelProto, inputs: Mapping[str, Array] | None = None) -> intonnx.Graph:
    """No quantum of difference in any lowering; the text form and the archive give it back."""
    feeds = run_inputs(model, spread=40.0) if inputs is None else inputs
    graph = check_model(model, feeds, quanta=0)
    # Without com.microsoft too.
    standard = intonnx.to_onnx(graph, runtime="standard")
    assert {found.domain for found in standard.opset_import} <= {"", MICROSOFT}
    assert intonnx.parse(str(graph), weights=graph.constants) == graph
    return graph


def names_of(graph: intonnx.Graph) -> list[str]:
    """The operators of a graph, without those that only bring codes in or out."""
    passing = ("qnn.quantize", "qnn.dequantize", "qnn.storage_cast")
    return [node.op.title for node in graph.nodes if node.op.title not in passing]


def per_axis(length: int, axis: int, dtype: Any = np.int8) -> Params:
    """Different scales and zero points along an axis."""
    return Params(dtype, 0.1 + np.arange(length) / 8, np.arange(length) * 3, axis)


def check_constant(
    op_type: str,
    value: Array,
    before: Params,
    others: Sequence[Any] = (),
    *,
    opset: int = 21,
    **attributes: Any,
) -> TensorType:
    """DQ of a constant -> op -> Add: moved at import; gives the type that the codes then have."""
    build = Builder(opset)
    x = build.operand(Held(value, before), 0)
    names = [build.constant(f"other{i}", np.asarray(v)) for i, v in enumerate(others)]
    moved = build.node(op_type, [x, *names], name="moved", **attributes)
    build.output(build.node("Neg", [moved], name="y"), np.float32)
    model = build.model()
    graph = intonnx.import_model(model)
    assert names_of(graph) == ["onnx.Neg"]
    wanted = run_onnxruntime(model, {}, optimized=False)
    apart(intonnx.compile(graph).run({}), wanted, 0)
    apart(run_onnxruntime(intonnx.to_onnx(graph), {}, optimized=False), wanted, 0)
    (name,) = graph.constants
    return graph.types[name]


def codes_model(
    op_type: str,
    shape: Sequence[int | str],
    before: Params,
    after: Params,
    others: Sequence[Any] = (),
    *,
    results: int = 1,
    **attributes: Any,
) -> onnx.ModelProto:
    """Q -> op on the codes -> DQ, as a graph that was quantized before it was rearranged."""
    build = Builder()
    codes = build.quantize(build.feed("x", shape, np.float32), before, "codes")
    names = [build.constant(f"other{i}", np.asarray(v)) for i, v in enumerate(others)]
    moved = build.node(op_type, [codes, *names], name="moved", results=results, **attributes)
    for index in range(results):
        value = moved if index == 0 else f"{moved}_{index}"
        build.output(build.dequantize(value, after, f"y{index}"), np.float32)
    return build.model()


def kind(shape: Sequence[int | str] | None, *, axis: int | None = None, n: int = 0) -> TensorType:
    """A type of u8 codes, per tensor or with `n` scales along an axis."""
    scale = np.float32(0.5) if axis is None else np.arange(1, n + 1, dtype=np.float32)
    zero = np.zeros(np.shape(scale), np.int64)
    params = QuantParams(storage=DType.U8, scale=scale, zero_point=zero, axis=axis)
    return quantized(params, shape)


def blocked(shape: Sequence[int], axis: int, block: int) -> TensorType:
    """A type of u8 codes with blocked scales."""
    sizes = [-(-n // block) if i == axis else n for i, n in enumerate(shape)]
    scale = np.arange(1, 1 + np.prod(sizes), dtype=np.float32).reshape(sizes)
    params = QuantParams(storage=DType.U8, scale=scale, zero_point=np.zeros(sizes, np.int64),
                         axis=axis, block=block)  # fmt: skip
    return quantized(params, shape)


def shape_of(op: Op, *operands: TensorType) -> Any:
    """The shape of the first result."""
    return op.infer(operands)[0].shape


def run_kernel(op: Op, *arrays: Array) -> tuple[Array, ...]:
    """The results of an operator's kernel, for u8 codes and plain integers after them."""
    integer.load_all()
    types = [kind(arrays[0].shape), *(plain(dtype_of(a), a.shape) for a in arrays[1:])]
    results = op.infer(types)
    context = Context(tuple(types), results, (None,) * len(types), "qlinear")
    return kernels.build(Node(op, (), ()), context)(arrays)


def shares_memory(op: Op, shape: Sequence[int], *others: Array) -> bool:
    """Whether every result is a view of the operand."""
    x = np.arange(np.prod(shape), dtype=np.uint8).reshape(shape)
    return all(np.shares_memory(x, result) for result in run_kernel(op, x, *others))
