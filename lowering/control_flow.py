"""If, Loop and Scan: run their bodies, compiled graphs, as often as they say.

Source: ONNX If-11, Loop-11 and Scan-9 and their later versions.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from intonnx.ir.errors import CompileFailure, RunFailure
from intonnx.ir.graph import Graph
from intonnx.ir.ops.onnx_op import OnnxOp
from intonnx.ir.types import Array

from .integer.kernel import Kernel

MAX_TURNS = 1 << 24
"""The largest number of turns of a Loop: beyond it, a model is taken for one that never ends."""

_BODIES = {"If": ("then_branch", "else_branch"), "Loop": ("body",), "Scan": ("body",)}

Run = Callable[[Sequence[Any]], list[Any]]
"""A body: values for its inputs in order, to those of its outputs."""
Compile = Callable[[Graph], Run]


def control_flow(op: OnnxOp, bodies: dict[str, Graph], compile_body: Compile) -> Kernel:
    """The kernel of an operator with these bodies. Raises CompileFailure when one is missing."""
    wanted = _BODIES.get(op.op_type, ())
    if not wanted or any(name not in bodies for name in wanted):
        has, needs = ", ".join(bodies), ", ".join(wanted) or "none"
        raise CompileFailure(f"the operator has the bodies {has}, and needs {needs}")
    runs = {name: compile_body(body) for name, body in bodies.items()}
    if op.op_type == "If":
        return _branch(op, runs["then_branch"], runs["else_branch"])
    if op.op_type == "Loop":
        return _loop(op, bodies["body"], runs["body"])
    return _scan(op, bodies["body"], runs["body"])


def _split(op: OnnxOp, operands: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
    """The operands of the operator, and the values that its bodies capture."""
    own = len(operands) - op.captures
    return operands[:own], operands[own:]


def _branch(op: OnnxOp, then: Run, otherwise: Run) -> Kernel:
    def run(operands: Sequence[Any]) -> tuple[Array, ...]:
        (condition,), captured = _split(op, operands)
        return tuple((then if np.asarray(condition).item() else otherwise)(captured))

    return run


def _loop(op: OnnxOp, body: Graph, turn: Run) -> Kernel:
    """The body takes the number of the turn, the condition and what is carried over."""

    def run(operands: Sequence[Any]) -> tuple[Array, ...]:
        (most, condition, *carried), captured = _split(op, operands)
        count = len(carried)
        rows: list[list[Any]] = [[] for _ in body.outputs[1 + count :]]
        go_on = condition is None or bool(np.asarray(condition).item())
        for index in _turns(most):
            if not go_on:
                break
            flag = np.asarray(go_on)
            again, *results = turn([np.asarray(index, np.int64), flag, *carried, *captured])
            carried = results[:count]
            for collected, row in zip(rows, results[count:], strict=True):
                collected.append(row)
            go_on = bool(np.asarray(again).item())
        outputs = body.outputs[1 + count :]
        stacked = [_stacked(body, n, r, 0) for n, r in zip(outputs, rows, strict=True)]
        return (*carried, *stacked)

    return run


def _turns(most: Any) -> Iterator[int]:
    turns = itertools.count() if most is None else range(int(np.asarray(most).item()))
    for index in turns:
        if index >= MAX_TURNS:
            raise RunFailure(f"the loop has not ended after {MAX_TURNS} turns")
        yield index


def _scan(op: OnnxOp, body: Graph, turn: Run) -> Kernel:
    """The body takes the state and a slice of each scanned value."""
    scanned_count = int(op.attribute("num_scan_inputs"))
    states = len(body.inputs) - op.captures - scanned_count
    made = len(body.outputs) - states
    in_axes = op.attribute("scan_input_axes") or (0,) * scanned_count
    backwards = op.attribute("scan_input_directions") or (0,) * scanned_count
    out_axes = op.attribute("scan_output_axes") or (0,) * made
    prepend = op.attribute("scan_output_directions") or (0,) * made

    def run(operands: Sequence[Any]) -> tuple[Array, ...]:
        own, captured = _split(op, operands)
        state, scanned = list(own[:states]), own[states:]
        slices = [
            np.moveaxis(x, axis, 0)[:: -1 if back else 1]
            for x, axis, back in zip(scanned, in_axes, backwards, strict=True)
        ]
        rows: list[list[Any]] = [[] for _ in range(made)]
        for parts in zip(*slices, strict=True):
            results = turn([*state, *parts, *captured])
            state = results[:states]
            for collected, row in zip(rows, results[states:], strict=True):
                collected.append(row)
        names = body.outputs[states:]
        stacked = [
            _stacked(body, name, row[:: -1 if front else 1], axis)
            for name, row, front, axis in zip(names, rows, prepend, out_axes, strict=True)
        ]
        return (*state, *stacked)

    return run


def _stacked(body: Graph, name: str, rows: list[Any], axis: int) -> Array:
    """The rows along a new axis; without a row, of the sizes that the body declares."""
    if rows:
        return np.stack(rows, axis)
    kind = body.types[name]
    sizes = [size if isinstance(size, int) else 0 for size in kind.shape or ()]
    shape = list(sizes)
    shape.insert(axis if axis >= 0 else len(sizes) + 1 + axis, 0)
    return np.zeros(shape, kind.dtype.numpy)
