"""Emitters by operator class: how an operator is written, alone or joined with what follows."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from intonnx.ir.errors import ExportFailure
from intonnx.ir.graph import Node
from intonnx.ir.op import Op
from intonnx.ir.types import DType, TensorType

if TYPE_CHECKING:
    from .emitter import Emitter

Emit = Callable[[Any, Node, "Emitter"], None]
EmitT = TypeVar("EmitT", bound=Emit)
Join = Callable[[Any, Node, Node, "Emitter"], bool]
JoinT = TypeVar("JoinT", bound=Join)


class Emitters:
    """The two tables; a second registration for one class raises ValueError."""

    def __init__(self) -> None:
        self._alone: dict[type[Op], Emit] = {}
        self._joined: dict[type[Op], Join] = {}
        self._scaled: set[type[Op]] = set()

    def register(self, *ops: type[Op]) -> Callable[[EmitT], EmitT]:
        """Register `emit(op, node, out)`, which writes one operator and its results."""

        def decorate(emit: EmitT) -> EmitT:
            for op in ops:
                if op in self._alone:
                    raise ValueError(f"{op.name} has two emitters")
                self._alone[op] = emit
            return emit

        return decorate

    def joins(self, *ops: type[Op], scaled: bool = False) -> Callable[[JoinT], JoinT]:
        """Register `join(op, node, consumer, out) -> bool` for accumulating operators.

        It writes `node` and the requantize or dequantize that alone reads its accumulator as one
        (as QLinearConv is), under the names of the consumer's results, and returns True; or it
        writes nothing and returns False. With `scaled` it is also asked about a dequantize that has
        scales or a bias as operands.
        """

        def decorate(join: JoinT) -> JoinT:
            self._scaled.update(ops if scaled else ())
            for op in ops:
                if op in self._joined:
                    raise ValueError(f"{op.name} is joined twice")
                self._joined[op] = join
            return join

        return decorate

    def emit(self, node: Node, out: Emitter) -> None:
        """Write a node. Raises ExportFailure when its operator has no emitter."""
        emit = self._alone.get(type(node.op))
        if emit is None:
            raise ExportFailure("the operator has no ONNX form", node=node.label)
        emit(node.op, node, out)

    def can_join(self, node: Node, consumer: Node, sums: TensorType) -> bool:
        """Whether a join wants to hear of a node and the only reader of its sums of this type."""
        if type(node.op) not in self._joined:
            return False
        if len(consumer.operands) > 1:
            return type(node.op) in self._scaled
        return sums.quant is not None and sums.dtype in (DType.I32, DType.I64)

    def join(self, node: Node, consumer: Node, out: Emitter) -> bool:
        """Write a node together with the reader of its accumulator, if that can be done."""
        join = self._joined.get(type(node.op))
        return join is not None and join(node.op, node, consumer, out)


emitters = Emitters()
