"""Names that nothing has yet, and names that other languages take."""

from __future__ import annotations

import re
from collections.abc import Iterable

LONGEST = 80
"""Longer names are cut: file systems and compilers have limits."""


class Names:
    """The names that are taken, and a count for each base, so that many from one stay cheap."""

    def __init__(self, taken: Iterable[str]) -> None:
        self._taken = set(taken)
        self._counts: dict[str, int] = {}

    def take(self, *names: str) -> None:
        """Note names that something has."""
        self._taken.update(names)

    def fresh(self, base: str) -> str:
        """Take `base`, or `base` with a number; returns what was taken."""
        name, count = base, self._counts.get(base, 0)
        while name in self._taken:
            count += 1
            name = f"{base}.{count}"
        self._counts[base] = count
        self._taken.add(name)
        return name


def identifiers(names: Iterable[str]) -> dict[str, str]:
    """An identifier for each name, in order: letters, digits and underscores, to follow a prefix.

    Two names never get the same one, not even on a file system that ignores case.
    """
    given: dict[str, str] = {}
    taken: set[str] = set()
    counts: dict[str, int] = {}
    for name in names:
        base = re.sub(r"[^A-Za-z0-9]+", "_", name)[:LONGEST].strip("_") or "value"
        found, count = base, counts.get(base, 1)
        while found.lower() in taken:
            count += 1
            found = f"{base}_{count}"
        counts[base] = count
        taken.add(found.lower())
        given[name] = found
    return given
