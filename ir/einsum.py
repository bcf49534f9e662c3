"""The equations of Einsum: a label for every axis."""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from .types import UNKNOWN_DIM, Dim

_ELLIPSIS = "..."


@dataclass(frozen=True)
class Equation:
    """An equation without ellipses: each operand and the result as a string of letters.

    Attributes:
        operands: for each operand a letter for each axis; a repeated one means a diagonal.
        result: the same for the result; what it lacks is summed over.
    """

    operands: tuple[str, ...]
    result: str

    @classmethod
    def of(cls, text: str, ranks: Sequence[int]) -> Equation:
        """The equation that ONNX writes as `text`, for operands of these ranks.

        Without `->` the result has the letters that stand once, in alphabetical order, after the
        axes of the ellipsis. Raises ValueError for what is no equation of such operands.
        Source: ONNX Einsum-12.
        """
        left, arrow, right = text.replace(" ", "").partition("->")
        terms = left.split(",")
        if len(terms) != len(ranks):
            raise ValueError(f"{len(terms)} terms for {len(ranks)} operands")
        letters = Counter("".join(terms).replace(_ELLIPSIS, ""))
        if not arrow:
            right = "".join(sorted(letter for letter, count in letters.items() if count == 1))
            right = _ELLIPSIS + right if _ELLIPSIS in left else right
        spare = [letter for letter in string.ascii_letters if letter not in letters]
        widths = [
            rank - len(term.replace(_ELLIPSIS, "")) if _ELLIPSIS in term else 0
            for term, rank in zip(terms, ranks, strict=True)
        ]
        hidden = "".join(spare[: max(0, *widths)])
        expanded = tuple(
            term.replace(_ELLIPSIS, hidden[len(hidden) - width :])
            for term, width in zip(terms, widths, strict=True)
        )
        found = cls(expanded, right.replace(_ELLIPSIS, hidden))
        found._check(ranks, left, right)
        return found

    def _check(self, ranks: Sequence[int], left: str, right: str) -> None:
        named = "".join((*self.operands, self.result))
        if not all(letter in string.ascii_letters for letter in named):
            raise ValueError("other signs than letters")
        for term, rank in zip(self.operands, ranks, strict=True):
            if len(term) != rank:
                raise ValueError(f"'{term}' names {len(term)} axes of {rank}")
        if not set(self.result) <= set("".join(self.operands)):
            raise ValueError(f"'{right}' has letters that no operand has")
        if len(set(self.result)) != len(self.result):
            raise ValueError(f"'{right}' names an axis twice")
        if _ELLIPSIS in left and _ELLIPSIS not in right:
            raise ValueError("the axes of the ellipsis are not in the result")

    def sizes(self, shapes: Sequence[Sequence[Dim]]) -> dict[str, Dim]:
        """The size of each letter; 1 gives way to another. Raises ValueError where two differ."""
        found: dict[str, Dim] = {}
        for term, shape in zip(self.operands, shapes, strict=True):
            for letter, size in zip(term, shape, strict=True):
                found[letter] = _joined(letter, found.get(letter, 1), size)
        return found

    @property
    def summed(self) -> str:
        """The letters that the result lacks."""
        letters = dict.fromkeys("".join(self.operands))
        return "".join(letter for letter in letters if letter not in self.result)

    @property
    def permutation(self) -> tuple[int, ...] | None:
        """The axes of the only operand in the order of the result; None when it does more."""
        if len(self.operands) != 1 or sorted(self.operands[0]) != sorted(self.result):
            return None
        return tuple(self.operands[0].index(letter) for letter in self.result)


def _joined(letter: str, known: Dim, size: Dim) -> Dim:
    if known in (1, size):
        return size
    if size == 1:
        return known
    if isinstance(known, int) and isinstance(size, int):
        raise ValueError(f"the axes '{letter}' have {known} and {size} elements")
    numbers = [n for n in (known, size) if isinstance(n, int)]
    return numbers[0] if numbers else UNKNOWN_DIM
