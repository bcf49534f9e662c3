"""What the table is made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import onnx

from support.models import Builder, Params

from .drawing import Draw

Build = Callable[[Draw], "str | None"]
NARROW: tuple[npt.DTypeLike, ...] = (np.uint8, np.int8)
WIDE: tuple[npt.DTypeLike, ...] = (np.uint8, np.int8, np.uint16, np.int16)

MOVES = (0, 0)
"""Quanta from onnxruntime without optimization, under the numerics qlinear and qdq: movers, tables,
clips, binary tables."""
JOINS = (1, 0)
"""Element-wise operators with a QLinear kernel, whose arithmetic is another than the literal."""
SUMS = (1, 1)
"""Accumulating operators, averages, normalizations."""


@dataclass(frozen=True)
class Pattern:
    """A boundary: what is built between the graph inputs and the last quantizer.

    Attributes:
        name: its part of the test's id.
        build: makes the graph; gives the value that is still to be quantized, if any.
        quanta: how far the results may be apart, see above.
        storages: the types of its activations.
        kernel: the operator that the export must have for 8-bit codes, "" for any.
        stays: the reason code of an operator that must stay float, "" when all are integer.
        opset: of ai.onnx.
        qdq_domain: of QuantizeLinear and DequantizeLinear.
        rewrite: changes the finished model.
    """

    name: str
    build: Build
    quanta: tuple[int, int] = MOVES
    storages: tuple[npt.DTypeLike, ...] = NARROW
    kernel: str = ""
    stays: str = ""
    opset: int = 21
    qdq_domain: str = ""
    rewrite: Callable[[onnx.ModelProto], onnx.ModelProto] | None = None

    def draw(
        self, storage: npt.DTypeLike, from_codes: bool, seed: int
    ) -> tuple[onnx.ModelProto, Draw]:
        """The model of this seed."""
        draw = Draw(self.name, storage, from_codes, seed, self.builder())
        return self.model(draw), draw

    def builder(self) -> Builder:
        """An empty model of the pattern's opset."""
        return Builder(self.opset, self.qdq_domain)

    def model(self, draw: Draw) -> onnx.ModelProto:
        """The model with these parameters."""
        value = self.build(draw)
        if value is not None:
            draw.finish(value)
        model = draw.build.model()
        if self.rewrite is not None:
            model = self.rewrite(model)
        draw.match(model)
        return model


@dataclass(frozen=True)
class Case:
    """A pattern with a type of activations and a kind of graph input."""

    pattern: Pattern
    storage: npt.DTypeLike
    from_codes: bool

    @property
    def id(self) -> str:
        """Pattern, type, and what enters the graph."""
        kind = np.dtype(self.storage)
        entering = "codes" if self.from_codes else "floats"
        return f"{self.pattern.name}-{kind.kind.replace('i', 's')}{kind.itemsize * 8}-{entering}"


def cases(patterns: list[Pattern]) -> Iterator[Case]:
    """Every pattern with each of its types and both kinds of graph input."""
    for pattern in patterns:
        for storage in pattern.storages:
            for from_codes in (False, True):
                yield Case(pattern, storage, from_codes)


def same_and_different(
    name: str, move: Callable[[Draw, str], str], shape: tuple[int, ...] = (2, 3, 4, 6)
) -> list[Pattern]:
    """A mover with equal parameters on both sides, and one with others."""

    def equal(d: Draw) -> None:
        params = d.params("x")
        d.finish(move(d, d.x(shape, params=params)), params)

    def other(d: Draw) -> str:
        return move(d, d.x(shape))

    return [Pattern(f"{name}-same", equal), Pattern(f"{name}-different", other)]


def without_zero_point(params: Params) -> Params:
    """The parameters with a zero point of 0 that is left out."""
    return Params(params.dtype, params.scale, None, params.axis)
