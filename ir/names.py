"""Names that nothing has yet."""

from __future__ import annotations

from collections.abc import Iterable


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
