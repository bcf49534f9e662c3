"""What an export changed for its target, so that an import can undo it.

An export may store codes in another type, and give kernels scales a few units in the last place
away. No value changes, but the model says other numbers than the graph did. They are kept as
JSON in the metadata of the exported model.
"""

from __future__ import annotations

from pydantic import Field

from .ops.lut import FloatStep
from .types import DType, QuantParams, Record

KEY = "intonnx.changes"
"""The key in a model's metadata properties."""


class Stored(Record):
    """How codes were stored before.

    Attributes:
        name: the value's name.
        storage: its type.
        zero: its zero point, or one for each along its axis.
        scale: its scale or scales where the model has no place for them, else none.
    """

    name: str
    storage: DType
    zero: tuple[int, ...]
    scale: tuple[float, ...] = ()

    @classmethod
    def with_scales(cls, name: str, params: QuantParams) -> Stored:
        """All that these parameters say but for their axis."""
        return cls(
            name=name,
            storage=params.storage,
            zero=tuple(params.zero_point.reshape(-1).tolist()),
            scale=tuple(params.scale.reshape(-1).tolist()),
        )


class Moved(Record):
    """Codes that the operators Cast, Add, Cast make of others: 128 up or down.

    Attributes:
        source: the codes that are read.
        scale: their scale.
        zero: their zero point.
        to_zero: that of the result.
    """

    source: str
    scale: float
    zero: int
    to_zero: int


class Multiplied(Record):
    """The two scales in whose quotient sums are multiplied before they are quantized by 1.

    Attributes:
        sums: the scale or scales of the sums.
        out: that of the result.
    """

    sums: tuple[float, ...]
    out: tuple[float, ...]


class Changes(Record):
    """What an export changed.

    Attributes:
        storage: by exported value, how its codes were stored.
        scales: by the result of a sum or product, the true scales of its two operands.
        moves: by result, codes that are others in another type.
        multipliers: by result, the scales of a quotient.
        recipes: by result of a look-up, the float operators that its table stands for.
        inputs: by input of the graph that gives codes, their parameters.
        outputs: by output of the graph that is codes, their parameters.
    """

    storage: dict[str, Stored] = Field(default_factory=dict[str, Stored])
    scales: dict[str, tuple[float, float]] = Field(default_factory=dict[str, tuple[float, float]])
    moves: dict[str, Moved] = Field(default_factory=dict[str, Moved])
    multipliers: dict[str, Multiplied] = Field(default_factory=dict[str, Multiplied])
    recipes: dict[str, tuple[FloatStep, ...]] = Field(
        default_factory=dict[str, tuple[FloatStep, ...]]
    )
    inputs: dict[str, Stored] = Field(default_factory=dict[str, Stored])
    outputs: dict[str, Stored] = Field(default_factory=dict[str, Stored])
