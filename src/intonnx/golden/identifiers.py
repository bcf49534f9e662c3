"""Names of values as parts of names of files and of C objects."""

from __future__ import annotations

import re
from collections.abc import Iterable

LONGEST = 80
"""Longer names are cut: file systems and compilers have limits."""


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
