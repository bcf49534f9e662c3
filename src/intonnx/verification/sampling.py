"""Random inputs for a graph, drawn from the ranges that its quantizers cover."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from intonnx.ir.errors import RunFailure
from intonnx.ir.graph import Graph
from intonnx.ir.op import Op
from intonnx.ir.ops.onnx_op import OnnxOp
from intonnx.ir.ops.quantize import Quantize
from intonnx.ir.types import UNKNOWN_DIM, Array, DType, QuantParams, TensorType

_ONNX_MOVERS = frozenset({"Flatten", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze"})


def random_inputs(
    graph: Graph,
    generator: np.random.Generator,
    *,
    batch: int = 1,
    sizes: Mapping[str, int] | None = None,
) -> dict[str, Array]:
    """An array for every graph input that has no default.

    Codes are uniform over their storage range; floats that go to a quantizer are uniform over the
    range that it covers, so that every code occurs, and standard normal otherwise; other integers
    are 0 or 1, which are indices in every tensor with two elements.

    Args:
        graph: the graph.
        generator: where the numbers come from.
        batch: the size of the first axis where it is not fixed.
        sizes: sizes by symbol, "?" for axes without one; what is not in it is 1.

    Raises:
        RunFailure: an input has no rank, is no tensor, or is of strings or complex numbers.
    """
    names = [name for name in graph.inputs if name not in graph.defaults]
    known = dict(sizes or {})
    for name in names:
        shape = graph.types[name].shape
        if shape and isinstance(shape[0], str) and shape[0] != UNKNOWN_DIM:
            known.setdefault(shape[0], batch)
    return {
        name: _draw(graph, name, _shape(name, graph.types[name], known, batch), generator)
        for name in names
    }


def _shape(name: str, kind: TensorType, known: Mapping[str, int], batch: int) -> tuple[int, ...]:
    if kind.shape is None:
        raise RunFailure(f"the rank of the input '{name}' is not known: give an array for it")
    return tuple(
        size
        if isinstance(size, int)
        else batch
        if axis == 0 and size == UNKNOWN_DIM
        else known.get(size, 1)
        for axis, size in enumerate(kind.shape)
    )


def _draw(graph: Graph, name: str, shape: tuple[int, ...], generator: np.random.Generator) -> Array:
    kind = graph.types[name]
    if kind.quant is not None:
        codes = generator.integers(kind.quant.qmin, kind.quant.qmax, shape, endpoint=True)
        return codes.astype(kind.dtype.numpy)
    if kind.dtype.is_integer or kind.dtype is DType.BOOL:
        return generator.integers(0, 2, shape).astype(kind.dtype.numpy)
    if not kind.dtype.is_float:
        raise RunFailure(f"there are no random values of type {kind.dtype} for '{name}': give some")
    params = _quantizer(graph, name)
    if params is None:
        return generator.standard_normal(shape).astype(kind.dtype.numpy)
    low, high = _range(params)
    return generator.uniform(low, high, shape).astype(kind.dtype.numpy)


def _range(params: QuantParams) -> tuple[float, float]:
    scale, zero = params.scale.astype(np.float64), params.zero_point
    return (
        float(((params.qmin - zero) * scale).min()),
        float(((params.qmax - zero) * scale).max()),
    )


def _quantizer(graph: Graph, name: str) -> QuantParams | None:
    """The parameters of the first quantizer that this value meets, behind movers or at once."""
    pending, seen = [name], {name}
    while pending:
        for node in graph.users.get(pending.pop(0), ()):
            if isinstance(node.op, Quantize):
                return node.op.out
            if _is_mover(node.op):
                pending += [result for result in node.results if result not in seen]
                seen.update(node.results)
    return None


def _is_mover(op: Op) -> bool:
    return op.kind == "mover" or (isinstance(op, OnnxOp) and op.op_type in _ONNX_MOVERS)
