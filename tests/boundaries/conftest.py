"""The summary that the table of boundaries ends with."""

from __future__ import annotations

from collections import Counter

import pytest

_COUNTED = ("integer here", "integer in onnxruntime")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """How many boundaries are integer here, and how many in onnxruntime's optimized graph."""
    counts: Counter[str] = Counter()
    total = 0
    for outcome in ("passed", "failed"):
        for report in terminalreporter.stats.get(outcome, []):
            found = dict(getattr(report, "user_properties", []))
            total += _COUNTED[0] in found
            counts.update(name for name in _COUNTED if found.get(name) is True)
    if total:
        terminalreporter.section("boundaries")
        for name in _COUNTED:
            terminalreporter.write_line(f"{counts[name]:4} of {total} cases {name}")
