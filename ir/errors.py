"""What can go wrong, each as one line that names the file, the node and the cause."""

from __future__ import annotations

from typing import Self

STUMBLES = (ArithmeticError, AssertionError, AttributeError, LookupError, MemoryError, TypeError,
            ValueError)  # fmt: skip
"""What code that was written for valid operators raises on one that no rule asked about."""


LONGEST = 1200
"""The largest number of characters of one part of a message; a longer one loses its middle."""


class IntonnxError(Exception):
    """The common base: a cause, and where it was found.

    Attributes:
        cause: one sentence, without a trailing full stop.
        node: the node that was being looked at, as `'name' (OpType)`, if any.
        file: the file the model came from, if any.
    """

    def __init__(self, cause: str, *, node: str | None = None, file: str | None = None) -> None:
        super().__init__(cause)
        self.cause = cause
        self.node = node
        self.file = file

    def located(self, *, node: str | None = None, file: str | None = None) -> Self:
        """Fill in what the raiser did not know; what is known already stays."""
        self.node = self.node or node
        self.file = self.file or file
        return self

    def __str__(self) -> str:
        where = [self.file] if self.file else []
        where += [f"node {self.node}"] if self.node else []
        return ": ".join(map(_shown, [*where, " ".join(self.cause.split())]))


def _shown(text: str) -> str:
    """Names come from strangers: no control characters reach a terminal, and no page of text."""
    if len(text) > LONGEST:
        text = f"{text[: LONGEST // 2]} ... {text[-LONGEST // 2 :]}"
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


class ImportFailure(IntonnxError):
    """A model cannot be imported."""


class FileFailure(ImportFailure):
    """The file is missing, unreadable, truncated or not an ONNX model."""


class ModelFailure(ImportFailure):
    """The file is ONNX, but the graph in it is not valid."""


class QuantizationFailure(ModelFailure):
    """A scale, zero point or axis is not one that the ONNX specification allows."""


class LimitFailure(ImportFailure):
    """The model is larger than the importer is willing to read."""


class TypeFailure(IntonnxError):
    """An operator's constraint is violated; `constraint` is its number, as in "C2"."""

    def __init__(self, op: str, constraint: str, cause: str) -> None:
        super().__init__(f"{op} {constraint}: {cause}")
        self.op = op
        self.constraint = constraint


class TextFailure(IntonnxError):
    """A text form or a saved graph cannot be read or written."""


class CompileFailure(IntonnxError):
    """A graph cannot be compiled."""


class RunFailure(IntonnxError):
    """The inputs given to a compiled graph do not fit its signature."""


class ExportFailure(IntonnxError):
    """A graph cannot be written as ONNX in the form that was asked for."""
