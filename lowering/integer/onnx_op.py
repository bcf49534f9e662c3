"""ONNX operators on plain integers and truth values, which models compute shapes with.

Source: the ONNX operator specification (docs/Operators.md), opsets 10 and later. What is not here
runs through the onnx package's reference operators, see `lowering/reference.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from intonnx.ir.ops.onnx_op import OnnxOp
from intonnx.ir.ops.slice import cuts
from intonnx.ir.types import Array, DType

from .kernel import Context, Kernel, kernels


class _Call(NamedTuple):
    """What an operator computes from: its arrays and its attributes."""

    op: OnnxOp
    arrays: Sequence[Any]

    def array(self, index: int) -> Array | None:
        """An operand, or None when it is absent."""
        return self.arrays[index] if index < len(self.arrays) else None

    def axes(self, index: int) -> tuple[int, ...] | None:
        """The axes: an operand in newer opsets, an attribute in older ones."""
        found = self.array(index)
        axes = self.op.attribute("axes") if found is None else found.ravel().tolist()
        return None if axes is None else tuple(axes)


def _shape(call: _Call) -> Array:
    shape = call.arrays[0].shape
    return np.array(shape[call.op.attribute("start", 0) : call.op.attribute("end")])


def _divided(call: _Call) -> Array:
    """Quotients rounded towards zero."""
    a, b = np.broadcast_arrays(*call.arrays)
    quotient = a // b
    away = (a % b != 0) & ((a < 0) != (b < 0))
    return np.asarray(quotient + away)


def _squeezed(call: _Call) -> Array:
    return np.asarray(np.squeeze(call.arrays[0], call.axes(1)))


def _unsqueezed(call: _Call) -> Array:
    return np.asarray(np.expand_dims(call.arrays[0], call.axes(1) or ()))


def _sliced(call: _Call) -> Array:
    data, starts, ends = call.arrays[:3]
    return np.asarray(data[cuts(data.shape, starts, ends, call.axes(3), call.array(4))])


def _expanded(call: _Call) -> Array:
    data, shape = call.arrays
    return np.broadcast_to(data, np.broadcast_shapes(data.shape, tuple(shape.tolist())))


def _reduced(reduce: Callable[..., Any], of_nothing: str = "") -> Callable[[_Call], Array]:
    """`of_nothing`: the end of the type's range that a reduction of no elements gives."""

    def run(call: _Call) -> Array:
        data = call.arrays[0]
        initial = {"initial": _end(data.dtype, of_nothing)} if of_nothing else {}
        axes, keep = call.axes(1), bool(call.op.attribute("keepdims", 1))
        if not axes and call.op.attribute("noop_with_empty_axes", 0):
            return np.asarray(data)
        return np.asarray(reduce(data, axis=axes or None, keepdims=keep, **initial))

    return run


def _end(dtype: np.dtype[Any], which: str) -> int | bool:
    if dtype == np.bool_:
        return which == "max"
    return int(getattr(np.iinfo(dtype), which))


def _elementwise(function: Callable[..., Any]) -> Callable[[_Call], Array]:
    return lambda call: np.asarray(function(*call.arrays))


def _folded(function: np.ufunc) -> Callable[[_Call], Array]:
    def run(call: _Call) -> Array:
        first, *others = call.arrays
        for other in others:
            first = function(first, other)
        return np.asarray(first)

    return run


_RUN: dict[str, Callable[[_Call], Array]] = {
    "Abs": _elementwise(np.abs),
    "Add": _elementwise(np.add),
    "And": _elementwise(np.logical_and),
    "Cast": _elementwise(np.asarray),
    "Concat": lambda call: np.concatenate(call.arrays, call.op.attribute("axis")),
    "Div": _divided,
    "Equal": _elementwise(np.equal),
    "Expand": _expanded,
    "Gather": lambda call: np.take(
        call.arrays[0], call.arrays[1], axis=call.op.attribute("axis", 0)
    ),
    "Greater": _elementwise(np.greater),
    "GreaterOrEqual": _elementwise(np.greater_equal),
    "Identity": _elementwise(np.asarray),
    "Less": _elementwise(np.less),
    "LessOrEqual": _elementwise(np.less_equal),
    "Max": _folded(np.maximum),
    "Min": _folded(np.minimum),
    "Mul": _elementwise(np.multiply),
    "Neg": _elementwise(np.negative),
    "Not": _elementwise(np.logical_not),
    "Or": _elementwise(np.logical_or),
    "Range": lambda call: np.arange(*(bound.item() for bound in call.arrays)),
    "ReduceMax": _reduced(np.max, "min"),
    "ReduceMin": _reduced(np.min, "max"),
    "ReduceProd": _reduced(np.prod),
    "ReduceSum": _reduced(np.sum),
    "Shape": _shape,
    "Size": lambda call: np.array(call.arrays[0].size),
    "Slice": _sliced,
    "Squeeze": _squeezed,
    "Sub": _elementwise(np.subtract),
    "Transpose": lambda call: np.transpose(call.arrays[0], call.op.attribute("perm")),
    "Unsqueeze": _unsqueezed,
    "Where": _elementwise(np.where),
    "Xor": _elementwise(np.logical_xor),
}
_OLDEST = 10


def is_plain(op: OnnxOp, context: Context) -> bool:
    """Whether the operator is one of these and has integers and truth values only.

    The operand of Shape and Size may be anything that has a shape.
    """
    if op.domain or op.version < _OLDEST or op.op_type not in _RUN or op.captures:
        return False
    read = () if op.op_type in ("Shape", "Size") else context.operands
    kinds = [kind for kind in (*read, *context.results) if kind is not None]
    if any(kind.dtype is DType.CONTAINER for kind in context.operands if kind is not None):
        return False
    # Arithmetic on types under 8 bits wraps at their width, which their arrays do not have.
    wide = (k.dtype is DType.BOOL or (k.is_integer and k.dtype.bits >= 8) for k in kinds)
    return len(context.results) == 1 and all(wide)


@kernels.register(OnnxOp)
def onnx_op(op: OnnxOp, context: Context) -> Kernel:
    """The operator must be one that `is_plain`."""
    compute, result = _RUN[op.op_type], context.results[0].dtype.numpy

    def run(operands: Sequence[Any]) -> tuple[Array, ...]:
        # Sums wrap at the width of their type, as the specification's C types do.
        with np.errstate(over="ignore", divide="raise"):
            found = compute(_Call(op, operands))
        return (np.asarray(found, result),)

    return run
