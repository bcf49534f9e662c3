"""What the harness feeds to the product: a file of one kind, and what lies beside it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["model.onnx", "graph.txt", "graph.intonnx"]


@dataclass(frozen=True)
class Case:
    """One hostile file.

    Attributes:
        name: says how it was made: base, mutations, seed.
        kind: the name of the file, which says what it is read as.
        data: its content.
        files: what else is in its folder, by name.
        links: symbolic links in its folder: where they lead, by name.
    """

    name: str
    kind: Kind
    data: bytes
    files: dict[str, bytes] = field(default_factory=dict[str, bytes])
    links: dict[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True)
class Outcome:
    """What became of a case.

    Attributes:
        case: its name.
        kind: "result", "refused" (one error of the product) or "wrong" (anything else).
        detail: the error's line, or what went wrong.
        seconds: how long it took.
    """

    case: str
    kind: Literal["result", "refused", "wrong"]
    detail: str
    seconds: float
