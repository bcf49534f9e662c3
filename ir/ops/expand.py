"""Repeat a tensor along its axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from intonnx.ir.broadcast import broadcast_shape
from intonnx.ir.op import Op, OperandTypes, ResultTypes, optional_operand, register_op
from intonnx.ir.shapes import computed_sizes, with_parameters
from intonnx.ir.types import UNKNOWN_DIM, Dim, QuantParams, TensorType


@register_op
class Expand(Op):
    """Repeat axes of size 1, and add axes in front, until `x` has the shape that it broadcasts to.

    Operands: `x`, any type; `shape`, integers of rank 1, when it is computed at run time. Result:
    the type of `x` with the shape that `x` and the target broadcast to; per-axis parameters follow
    their axis. Source: ONNX Expand-13.

    Constraints:
        C1: the target is given once, as attribute or as operand; no size is negative.
        C2: `x` and the target broadcast.
        C3: the operand `shape` holds integers and has rank 1.
        C4: an axis with per-axis parameters is not repeated; they need known ranks and no blocks.
    """

    name: ClassVar[str] = "qnn.expand"
    signature: ClassVar[tuple[str, ...]] = ("x", "shape?")
    kind: ClassVar[str] = "mover"
    shape: tuple[int, ...] | None = None

    def infer(self, operands: OperandTypes) -> ResultTypes:
        x = self.operand(operands, 0)
        computed: TensorType | None = optional_operand(operands, 1)
        self.require((self.shape is None) != (computed is None), "C1", "not one target")
        self.require(min(self.shape or (0,)) >= 0, "C1", f"the target is {self.shape}")
        target = self.shape if computed is None else computed_sizes(self, computed, "C3")
        shape = broadcast_shape(self, [x.shape, target], "C2")
        return (with_parameters(x, shape, self._params(x, shape)),)

    def _params(self, x: TensorType, shape: Sequence[Dim] | None) -> QuantParams | None:
        params = x.quant
        if params is None or params.axis is None:
            return params
        self.require(params.block is None, "C4", "x has blocked parameters")
        self.require(x.shape is not None and shape is not None, "C4", "a rank is not known")
        assert x.shape is not None
        assert shape is not None
        axis = params.axis + len(shape) - len(x.shape)
        self.require(shape[axis] == x.shape[params.axis], "C4", f"axis {params.axis} is repeated")
        return params.with_axis(axis)


@register_op
class Tile(Op):
    """`x` laid end to end, `repeats[i]` times along axis i.

    Operands: `x`, any type, rank r; `repeats`, integers [r], when they are computed at run time.
    Result: the type of `x` with the longer shape. Source: ONNX Tile-13.

    Constraints:
        C1: the repeats are given once, as attribute or as operand; none is negative.
        C2: there is one for each axis of `x`.
        C3: the operand `repeats` holds integers and has rank 1.
        C4: an axis with per-axis parameters is not repeated, and `x` is not blocked.
    """

    name: ClassVar[str] = "qnn.tile"
    signature: ClassVar[tuple[str, ...]] = ("x", "repeats?")
    kind: ClassVar[str] = "mover"
    repeats: tuple[int, ...] | None = None

    def infer(self, operands: OperandTypes) -> ResultTypes:
        x = self.operand(operands, 0)
        computed: TensorType | None = optional_operand(operands, 1)
        self.require((self.repeats is None) != (computed is None), "C1", "not one of them")
        self.require(min(self.repeats or (0,)) >= 0, "C1", f"the repeats are {self.repeats}")
        times = self.repeats if computed is None else computed_sizes(self, computed, "C3")
        if x.shape is not None and times is not None:
            fits = len(times) == len(x.shape)
            self.require(fits, "C2", f"{len(times)} repeats for rank {len(x.shape)}")
        if x.quant is not None and x.quant.axis is not None:
            self.require(x.quant.block is None, "C4", "x has blocked parameters")
            once = times is not None and times[x.quant.axis] == 1
            self.require(once, "C4", f"axis {x.quant.axis} is repeated")
        if x.shape is None or times is None:
            return (x if times is None else x.with_shape([UNKNOWN_DIM] * len(times)),)
        return (x.with_shape([_tiled(*pair) for pair in zip(x.shape, times, strict=True)]),)


def _tiled(size: Dim, times: Dim) -> Dim:
    if isinstance(size, int) and isinstance(times, int):
        return size * times
    return size if times == 1 else 0 if 0 in (size, times) else UNKNOWN_DIM
