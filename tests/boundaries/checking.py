"""One case of the table, held against onnxruntime."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

import numpy as np
import onnx

import intonnx
from support.models import Array
from support.runtime import run_onnxruntime

from .census import computes_in_floats, integer_in_onnxruntime
from .drawing import SEEDS, Draw
from .patterns import Case

Quanta = Mapping[str, float | None]
Record = Callable[[str, object], None]


def check(case: Case, record: Record) -> None:
    """Import, integers against the literal model, the export against the integers.

    Tells `record` for the first seed whether all operators are integer, here and in onnxruntime.
    """
    for seed in range(SEEDS):
        model, draw = case.pattern.draw(case.storage, case.from_codes, seed)
        graph = check_drawn(case, model, draw, f"seed {seed}")
        if seed == 0 and not case.pattern.stays:
            record("integer here", intonnx.coverage(graph).float == 0)
            record("integer in onnxruntime", integer_in_onnxruntime(model))


def check_drawn(case: Case, model: onnx.ModelProto, draw: Draw, what: str) -> intonnx.Graph:
    """One model of the case; returns what it was imported to."""
    graph = intonnx.import_model(model)
    _check_states(case, graph)
    wanted = run_onnxruntime(model, draw.inputs, optimized=False, exact=False)
    exported = intonnx.to_onnx(graph)
    if case.pattern.stays:
        assert _quantizers(exported) <= _quantizers(model)
    ours = intonnx.compile(graph).run(draw.inputs)
    literal = intonnx.compile(graph, numerics="qdq").run(draw.inputs)
    quanta, literal_quanta = case.pattern.quanta
    _compare(ours, wanted, draw.quanta, quanta, what)
    _compare(literal, wanted, draw.quanta, literal_quanta, f"qdq, {what}")
    _check_export(case, exported, draw.inputs, ours, draw.quanta)
    return graph


def _check_states(case: Case, graph: intonnx.Graph) -> None:
    """Every operator is integer, or gone; or the one that must stay says why."""
    floats = [(n.op, n.code, n.detail) for n in intonnx.coverage(graph).nodes if n.state == "float"]
    if case.pattern.stays:
        assert {code for _, code, _ in floats} == {case.pattern.stays}
    else:
        assert not floats


def _check_fixed(
    case: Case, graph: intonnx.Graph, inputs: Mapping[str, Array], trace: Mapping[str, Array]
) -> None:
    """The numerics `fixed`: each operator alone is within a quantum of `qlinear`, in integers."""
    fixed = intonnx.compile(graph, numerics="fixed").trace(inputs, given=trace)
    ends = {*graph.inputs, *graph.outputs, *graph.constants}
    for name, array in fixed.items():
        if array.dtype.kind == "f":
            assert case.pattern.stays or name in ends, name
            np.testing.assert_array_equal(array, trace[name], err_msg=f"fixed: {name}")
        else:
            apart = np.abs(array.astype(np.int64) - trace[name].astype(np.int64))
            assert apart.max(initial=0) <= (array.dtype.kind != "b"), f"fixed: {name}"


def _check_export(
    case: Case, exported: onnx.ModelProto, inputs: Mapping[str, Array],
    ours: Mapping[str, Array], quanta: Quanta,
) -> None:  # fmt: skip
    """Integer operators give our codes bit for bit, DQ -> op -> Q what its class allows."""
    if case.pattern.kernel and np.dtype(case.storage).itemsize == 1:
        assert case.pattern.kernel in {node.op_type for node in exported.graph.node}
    exact = not computes_in_floats(exported)
    # Around a float operator that must stay, onnxruntime's optimizer quantizes on its own.
    for optimized in (False,) if case.pattern.stays else (False, True):
        found = run_onnxruntime(exported, inputs, optimized=optimized, exact=False)
        # The optimizer gives what is written as DQ -> op -> Q kernels of its own.
        allowed = 0 if exact else max(case.pattern.quanta[0], int(optimized))
        _compare(found, ours, quanta, allowed, f"export, {optimized=}")


def _quantizers(model: onnx.ModelProto) -> int:
    return Counter(node.op_type for node in model.graph.node)["QuantizeLinear"]


def _compare(
    found: Mapping[str, Array], wanted: Mapping[str, Array], quanta: Quanta, allowed: int, what: str
) -> None:
    """Values that nothing quantized are equal to the rounding of float32 sums."""
    for name, quantum in quanta.items():
        one, other = found[name], wanted[name]
        assert (one.dtype, one.shape) == (other.dtype, other.shape), (what, name)
        if quantum is None:
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5 * np.abs(other).max())
        elif allowed == 0 or quantum == 0:
            np.testing.assert_array_equal(one, other, err_msg=f"{what}: {name}")
        else:
            apart = np.abs(one.astype(np.float64) - other.astype(np.float64)) / quantum
            # Real values of codes are rounded to their type.
            rounding = 1e-4
            if one.dtype.kind == "f":
                rounding += float(np.finfo(one.dtype).eps * np.abs(other).max(initial=0)) / quantum
            assert apart.max(initial=0) <= allowed + rounding, (what, name, apart.max())
