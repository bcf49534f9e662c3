"""What a kernel is: compiled once from an operator and its types, run many times on arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from intonnx.ir.errors import CompileFailure
from intonnx.ir.graph import Node
from intonnx.ir.op import Op
from intonnx.ir.types import Array, TensorType
from intonnx.lowering.numerics import Numerics

Kernel = Callable[[Sequence[Any]], tuple[Array, ...]]
"""From the operands' arrays (None for an absent one) to the results' arrays.

A kernel never writes to its operands and may return views of them. Arrays of type i32 may hold
int64 where the sums of a model can leave the range of int32.
"""


@dataclass(frozen=True)
class Context:
    """What a kernel is compiled from, beside the operator.

    Attributes:
        operands: the types of the operands, None for an absent one.
        results: the types of the results.
        constants: the arrays of constant operands, None for all others.
        numerics: which arithmetic to follow.
        followers: element-wise operators that the kernel applies to its only result while that is
            in the cache, in turn, each with its own context; its result is then that of the last.
    """

    operands: tuple[TensorType | None, ...]
    results: tuple[TensorType, ...]
    constants: tuple[Array | None, ...]
    numerics: Numerics
    followers: tuple[Follower, ...] = ()

    def operand(self, index: int) -> TensorType:
        """The type of an operand that must be there."""
        kind = self.operands[index]
        assert kind is not None
        return kind

    def has(self, index: int) -> bool:
        """Whether an optional operand is given."""
        return index < len(self.operands) and self.operands[index] is not None

    def constant(self, index: int) -> Array | None:
        """The array of an operand when it is given and constant."""
        return self.constants[index] if index < len(self.constants) else None


class Follower(NamedTuple):
    """An operator that reads what another one makes, and nothing else but constants."""

    op: Op
    context: Context


Builder = Callable[[Any, Context], Kernel]
BuilderT = TypeVar("BuilderT", bound=Builder)


class Kernels:
    """Kernel builders by operator class."""

    def __init__(self) -> None:
        self._builders: dict[type[Op], Builder] = {}
        self._channel_axes: dict[type[Op], int] = {}
        self._elementwise: set[type[Op]] = set()

    def register(
        self, *ops: type[Op], channel_axis: int | None = None, elementwise: bool = False
    ) -> Callable[[BuilderT], BuilderT]:
        """Register `build(op, context) -> Kernel` for operator classes; twice raises ValueError.

        Args:
            ops: the operator classes.
            channel_axis: given when the kernel applies `Context.followers`; their parameters may
                vary along this axis of the result, and no other.
            elementwise: whether each element of the result depends on one element of the first
                operand, on constants and on parameters along an axis: such operators may follow.
        """

        def decorate(build: BuilderT) -> BuilderT:
            for op in ops:
                if op in self._builders:
                    raise ValueError(f"{op.name} has two kernels")
                self._builders[op] = build
                if channel_axis is not None:
                    self._channel_axes[op] = channel_axis
                if elementwise:
                    self._elementwise.add(op)
            return build

        return decorate

    def home(self, op: type[Op]) -> str:
        """The module of an operator class's kernel. Raises KeyError when there is none."""
        return self._builders[op].__module__

    def channel_axis(self, op: Op) -> int | None:
        """The axis along which parameters of followers may vary; None for one without any."""
        return self._channel_axes.get(type(op))

    def is_elementwise(self, op: Op) -> bool:
        """Whether an operator may follow another one."""
        return type(op) in self._elementwise

    def follower(self, follower: Follower) -> Kernel:
        """The kernel of an operator that follows."""
        return self._builders[type(follower.op)](follower.op, follower.context)

    def build(self, node: Node, context: Context) -> Kernel:
        """The kernel of a node. Raises CompileFailure when its operator has none."""
        builder = self._builders.get(type(node.op))
        if builder is None:
            raise CompileFailure("the operator has no integer kernel", node=node.label)
        return builder(node.op, context)


kernels = Kernels()
