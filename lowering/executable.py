"""Compile a graph once, run it many times."""

from __future__ import annotations

import functools
import time
import tracemalloc
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from intonnx.ir.errors import STUMBLES, CompileFailure, IntonnxError, RunFailure
from intonnx.ir.graph import Graph, Node, bodies_of
from intonnx.ir.ops.onnx_op import OnnxOp
from intonnx.ir.types import Array, DType, TensorType

from . import integer
from .control_flow import control_flow
from .fusion import chains
from .integer.kernel import Context, Follower, Kernel, kernels
from .integer.onnx_op import is_plain
from .numerics import Numerics, checked_numerics
from .profile import OperatorProfile


@dataclass(frozen=True)
class _Step:
    nodes: tuple[Node, ...]
    """The operator, then those that its kernel applies to its result."""
    results: tuple[str, ...]
    kernel: Kernel
    last_uses: tuple[str, ...]
    """Values that nothing needs after this step."""

    @property
    def node(self) -> Node:
        """The operator whose operands the step reads."""
        return self.nodes[0]


class Executable:
    """A compiled graph. `run` may be called from several threads at once.

    Attributes:
        graph: the graph it was compiled from.
        numerics: the arithmetic it follows.
    """

    def __init__(self, graph: Graph, numerics: Numerics) -> None:
        self.graph = graph
        self.numerics: Numerics = numerics
        self._constants = dict(graph.constants)
        integer.load_all()
        self._steps = _steps(graph, numerics, tuple(chains(graph)))

    @functools.cached_property
    def _single_steps(self) -> tuple[_Step, ...]:
        """Steps that make every value, for traces."""
        if all(step.results == step.node.results for step in self._steps):
            return self._steps
        return _steps(self.graph, self.numerics, [(node,) for node in self.graph.nodes])

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Compute the outputs.

        Args:
            inputs: an array for every graph input, in its element type and shape; a symbolic size
                may be any number, the same wherever the symbol stands. Inputs with a default may
                be left out.

        Returns:
            An array for every graph output, by name.

        Raises:
            RunFailure: a name, shape or element type does not fit.
        """
        values = self._bound(inputs)
        for step in self._steps:
            self._execute(step, values)
            for name in step.last_uses:
                del values[name]
        return {name: _owned(values[name], self.graph.types[name]) for name in self.graph.outputs}

    def profile(self, inputs: Mapping[str, Array]) -> tuple[OperatorProfile, ...]:
        """What each step of `run` takes, in the order that they run in.

        Times are those of one run after another that is not counted; what a step allocates is
        measured in a third one, as that slows it down. Takes and raises what `run` does.
        """
        self.run(inputs)
        begin = time.perf_counter()
        timed = list(self._measured(inputs, time.perf_counter))
        tracemalloc.start()
        try:
            traced = list(self._measured(inputs, _Peak()))
        finally:
            tracemalloc.stop()
        return tuple(
            OperatorProfile(
                node=step.node.label,
                operators=tuple(node.op.title for node in step.nodes),
                results=tuple(filter(None, step.results)),
                start=start - begin,
                seconds=end - start,
                result_bytes=sum(sizes[name] for name in filter(None, step.results)),
                live_bytes=sum(sizes.values()),
                scratch_bytes=max(0, int(peak)),
            )
            for (step, start, end, sizes), (_, _, peak, _) in zip(timed, traced, strict=True)
        )

    def _measured(
        self, inputs: Mapping[str, Array], measure: Callable[[], float]
    ) -> Iterator[tuple[_Step, float, float, dict[str, int]]]:
        """Each step with a measurement before and after it, and the sizes of all live values."""
        values = self._bound(inputs)
        for step in self._steps:
            before = measure()
            self._execute(step, values)
            after = measure()
            alive = {n: a for n, a in values.items() if n not in self._constants}
            yield step, before, after, {n: getattr(a, "nbytes", 0) for n, a in alive.items()}
            for name in step.last_uses:
                del values[name]

    def trace(
        self, inputs: Mapping[str, Array], given: Mapping[str, Array] | None = None
    ) -> dict[str, Array]:
        """Every value by name, in the element type of the graph: inputs, constants and results.

        An accumulator whose sums leave int32 is int64.
        With `given`, operators that read a value of one of these names read the given array
        instead of what was computed, so that the trace shows the error of each operator alone.
        Takes and raises what `run` does.
        """
        values = self._bound(inputs)
        computed = dict(values)
        for step in self._single_steps:
            self._execute(step, values)
            for name in filter(None, step.results):
                computed[name] = values[name]
                if given is not None and name in given:
                    values[name] = given[name]
        return {name: _owned(array, self.graph.types[name]) for name, array in computed.items()}

    def _bound(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        checked = check_inputs(self.graph, inputs)
        return {**self._constants, **checked}

    def _execute(self, step: _Step, values: dict[str, Array]) -> None:
        node = step.node
        try:
            results = step.kernel([values[name] if name else None for name in node.operands])
        except IntonnxError as error:
            raise error.located(node=node.label) from None
        except STUMBLES as error:
            raise RunFailure(f"{type(error).__name__}: {error}", node=node.label) from error
        if any(step.results[len(results) :]):
            raise RunFailure(
                f"the operator has {len(results)} results, the node {len(step.results)}",
                node=node.label,
            )
        made = zip(step.results, results, strict=False)
        values.update({name: array for name, array in made if name})


class _Peak:
    """The largest size of what was allocated since the last call, beyond what was there then."""

    def __init__(self) -> None:
        self._base = 0

    def __call__(self) -> float:
        _, peak = tracemalloc.get_traced_memory()
        above = peak - self._base
        tracemalloc.reset_peak()
        self._base, _ = tracemalloc.get_traced_memory()
        return above


def compile_graph(graph: Graph, numerics: str = "qlinear") -> Executable:
    """Compile a graph to exact integer execution.

    Args:
        graph: the graph; operators that stayed float run through the onnx package's reference
            operators, all others in integers with numpy alone.
        numerics: "qlinear", "qdq" or "fixed", see `intonnx.lowering.numerics`.

    Raises:
        CompileFailure: there is no such numerics, or an operator cannot run under it.
    """
    return Executable(graph, checked_numerics(numerics))


def _steps(
    graph: Graph, numerics: Numerics, parts: Sequence[tuple[Node, ...]]
) -> tuple[_Step, ...]:
    last: dict[str, int] = {}
    for index, nodes in enumerate(parts):
        last.update(dict.fromkeys([*nodes[0].operands, *nodes[-1].results], index))
    kept = {*graph.outputs, *graph.constants, ""}
    ends: defaultdict[int, list[str]] = defaultdict(list)
    for name in (name for name in last if name not in kept):
        ends[last[name]].append(name)
    return tuple(
        _Step(
            nodes,
            nodes[-1].results,
            node_kernel(graph, nodes[0], numerics, nodes[1:]),
            tuple(ends.get(index, ())),
        )
        for index, nodes in enumerate(parts)
    )


def needs_onnx(graph: Graph, node: Node) -> bool:
    """Whether an operator, or one of its bodies, runs through the onnx package's reference."""
    if bodies := bodies_of(node.op):
        return any(needs_onnx(body, inner) for body in bodies.values() for inner in body.nodes)
    return isinstance(node.op, OnnxOp) and not is_plain(node.op, _context(graph, node, "qlinear"))


def _context(graph: Graph, node: Node, numerics: Numerics) -> Context:
    return Context(
        operands=tuple(graph.operand_types(node)),
        results=tuple(graph.types[name] for name in node.results if name),
        constants=tuple(graph.constants.get(name) for name in node.operands),
        numerics=numerics,
    )


def node_kernel(
    graph: Graph, node: Node, numerics: Numerics, followers: Sequence[Node] = ()
) -> Kernel:
    """The kernel of one operator and of those that it applies to its result itself.

    Raises CompileFailure, naming the node, when it has none.
    """
    integer.load_all()
    try:
        if bodies := bodies_of(node.op):
            assert isinstance(node.op, OnnxOp)
            return control_flow(node.op, bodies, lambda body: _body(body, numerics))
        if needs_onnx(graph, node):
            # Only graphs with float operators need onnx at run time.
            from .reference import reference_kernel

            return reference_kernel(graph, node)
        after = tuple(Follower(n.op, _context(graph, n, numerics)) for n in followers)
        context = replace(_context(graph, node, numerics), followers=after)
        return kernels.build(node, context)
    except IntonnxError as error:
        raise error.located(node=node.label) from None
    except STUMBLES as error:
        raise CompileFailure(f"{type(error).__name__}: {error}", node=node.label) from error


def _body(graph: Graph, numerics: Numerics) -> Callable[[Sequence[Any]], list[Any]]:
    executable = Executable(graph, numerics)

    def run(values: Sequence[Any]) -> list[Any]:
        outputs = executable.run(dict(zip(graph.inputs, values, strict=True)))
        return [outputs[name] for name in graph.outputs]

    return run


def _owned(array: Array, kind: TensorType) -> Array:
    """The array in the element type of the graph, contiguous and not shared with constants.

    Sums that leave int32 are computed in 64 bits, and stay so rather than wrap.
    """
    if kind.dtype is DType.CONTAINER:
        return array
    limits = kind.dtype if kind.dtype is DType.I32 and array.dtype == np.int64 else None
    if limits and array.size and not limits.low <= array.min() <= array.max() <= limits.high:
        return np.array(array, order="C")
    return np.array(array, dtype=kind.dtype.numpy, order="C")


def check_inputs(graph: Graph, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """The inputs as arrays, defaults filled in. Raises RunFailure when one does not fit."""
    unknown = [name for name in inputs if name not in graph.inputs]
    if unknown:
        raise RunFailure(
            f"no input '{unknown[0]}': the inputs are {', '.join(map(repr, graph.inputs))}"
        )
    symbols: dict[str, int] = {}
    checked: dict[str, Array] = {}
    for name in graph.inputs:
        if name in inputs:
            checked[name] = _checked(name, inputs[name], graph.types[name], symbols)
        elif name in graph.defaults:
            checked[name] = graph.defaults[name]
        else:
            raise RunFailure(f"the input '{name}' is missing")
    return checked


def _beyond(array: Array, kind: TensorType) -> str | None:
    """What a caller's codes have that the narrower range in their type says they have not."""
    if kind.quant is None or not kind.quant.is_narrow or not array.size:
        return None
    low, high = kind.quant.qmin, kind.quant.qmax
    if low <= int(array.min()) and int(array.max()) <= high:
        return None
    return f"has codes from {array.min()} to {array.max()}, not from {low} to {high}"


def _checked(name: str, value: Any, kind: TensorType, symbols: dict[str, int]) -> Any:
    if kind.dtype is DType.CONTAINER:
        return value
    array = np.asarray(value)
    is_text = kind.dtype is DType.STRING and array.dtype.kind in "OUS"
    if kind.dtype.is_integer and array.dtype.name == kind.dtype.ml_name:
        array = array.astype(kind.dtype.numpy)
    if array.dtype != kind.dtype.numpy and not is_text:
        raise RunFailure(f"the input '{name}' is {array.dtype}, not {kind.dtype.numpy}")
    if (beyond := _beyond(array, kind)) is not None:
        raise RunFailure(f"the input '{name}' {beyond}")
    if kind.shape is None:
        return array
    wanted = "[" + ", ".join(str(size) for size in kind.shape) + "]"
    if array.ndim != len(kind.shape):
        raise RunFailure(f"the input '{name}' has shape {list(array.shape)}, not {wanted}")
    for size, expected in zip(array.shape, kind.shape, strict=True):
        if isinstance(expected, str) and expected != "?":
            expected = symbols.setdefault(expected, size)
        if isinstance(expected, int) and size != expected:
            raise RunFailure(f"the input '{name}' has shape {list(array.shape)}, not {wanted}")
    return array
