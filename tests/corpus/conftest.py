"""The table that the run over the whole corpus ends with."""

from __future__ import annotations

import pytest

COLUMNS = ("model", "producer", "integer", "agreement")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """One line for each model: who made it, its integer share, what its results agree with."""
    rows: list[tuple[str, ...]] = []
    for outcome in ("passed", "failed"):
        for report in terminalreporter.stats.get(outcome, []):
            found = dict(getattr(report, "user_properties", []))
            if COLUMNS[0] in found:
                rows.append(tuple(str(found.get(name, "")) for name in COLUMNS))
    if not rows:
        return
    terminalreporter.section("corpus")
    rows = [COLUMNS, *sorted(rows)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        terminalreporter.write_line("  ".join(cells).rstrip())
