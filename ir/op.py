"""What an operator is: a frozen record with numbered constraints and a result type."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeVar

from pydantic import ValidationError

from .bounds import Bounds
from .errors import TypeFailure
from .types import Array, Dim, QuantParams, Record, TensorType, quantized

OperandTypes = Sequence[TensorType | None]
ResultTypes = tuple[TensorType, ...]


class Op(Record):
    """An operator and its attributes; operands and results belong to the node that holds it.

    A subclass states in its docstring the operands, the result, the source of the arithmetic and
    the constraints C1, C2, ...; `infer` raises `TypeFailure` with that number when one is violated.

    A field called `out` of type `QuantParams` holds the parameters of the result. The text form
    shows it in the result's type, not among the attributes.
    """

    name: ClassVar[str]
    signature: ClassVar[tuple[str, ...]]
    """Names of the operands; a trailing `?` marks one that may be absent, `*` any number."""
    kind: ClassVar[str] = "compute"
    """"boundary" between float and integers, "mover" that never looks at values, or "compute"."""

    def infer(self, operands: OperandTypes) -> ResultTypes:
        """The result types for these operand types.

        An absent optional operand is None. Raises TypeFailure when a constraint is violated.
        """
        raise TypeError(f"{type(self).__name__} has no result type")

    def multiply_accumulates(self, operands: OperandTypes, results: ResultTypes) -> int:
        """How many products the operator adds up, by which coverage weighs it; 0 for most.

        A size that is not known counts as 1, so that a symbolic batch counts one item.
        """
        return 0

    def accumulator_bounds(
        self, operands: OperandTypes, constants: Sequence[Array | None]
    ) -> Bounds | None:
        """What the sums of an accumulating operator can reach, for each channel.

        `constants` holds the arrays of constant operands, None for all others. None for operators
        that do not accumulate, and for sums whose length is not known.
        """
        return None

    @property
    def title(self) -> str:
        """The name that the text form prints."""
        return self.name

    def require(self, condition: bool, constraint: str, cause: str) -> None:
        """Raise TypeFailure with the constraint's number unless the condition holds."""
        if not condition:
            raise TypeFailure(self.title, constraint, cause)

    def codes(
        self, params: QuantParams, shape: Sequence[Dim] | None, constraint: str
    ) -> TensorType:
        """The type of codes with these parameters.

        Raises TypeFailure with the constraint's number when the shape has not the parameters' axis,
        or another number of elements or blocks along it.
        """
        try:
            return quantized(params, shape)
        except ValidationError as error:
            cause = str(error.errors()[0]["msg"]).removeprefix("Value error, ")
            raise TypeFailure(self.title, constraint, cause) from None

    def operand(self, operands: OperandTypes, index: int, constraint: str = "C0") -> TensorType:
        """The type of an operand that must be there; C0 is "every required operand is given"."""
        found = operands[index] if index < len(operands) else None
        if found is None:
            raise TypeFailure(self.title, constraint, f"operand {index} is missing")
        return found

    def shape_of(
        self, operands: OperandTypes, index: int, constraint: str = "C0"
    ) -> tuple[int | str, ...]:
        """The shape of an operand whose rank must be known."""
        shape = self.operand(operands, index, constraint).shape
        if shape is None:
            raise TypeFailure(self.title, constraint, f"operand {index} has no known rank")
        return shape


def element_count(shape: Sequence[int | str] | None) -> int:
    """The number of elements; a size that is not known counts as 1."""
    return math.prod(size for size in shape or () if isinstance(size, int))


def optional_operand(operands: Sequence[Any], index: int) -> Any:
    """The operand at this index, or None when it is absent or the list is shorter."""
    return operands[index] if index < len(operands) else None


OpClass = TypeVar("OpClass", bound=type[Op])
_OPS: dict[str, type[Op]] = {}


def register_op(cls: OpClass) -> OpClass:
    """Make an operator known to the parser; a second one of the same name raises."""
    if cls.name in _OPS:
        raise ValueError(f"the operator {cls.name} is registered twice")
    _OPS[cls.name] = cls
    return cls


def registered_ops() -> dict[str, type[Op]]:
    """Every operator by name."""
    from . import ops

    ops.load_all()
    return dict(_OPS)


Evaluate = Callable[[Sequence[Array | None]], tuple[Array, ...]]
