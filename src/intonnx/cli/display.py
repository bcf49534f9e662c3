"""Tables on a terminal, aligned plain text elsewhere."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence

from .program import printable


def show(text: str = "") -> None:
    """Print a line to stdout."""
    print(printable(text))


def show_table(
    headers: Sequence[str], rows: Sequence[Sequence[object]], *, right: Sequence[int] = ()
) -> None:
    """Print a table to stdout.

    Args:
        headers: the titles of the columns; no heading is printed when all are empty.
        rows: the cells of each row.
        right: the columns that are aligned to the right.
    """
    from rich import box
    from rich.console import Console
    from rich.table import Table

    # Names in models are no markup: `[N,10]` and `:x:` stand for themselves.
    plain = Console(markup=False, emoji=False, highlight=False)
    terminal = plain.is_terminal
    table = Table(
        box=box.SIMPLE_HEAD if terminal else None,
        show_header=any(headers),
        pad_edge=False,
        padding=(0, 3, 0, 0),
        show_edge=False,
    )
    for index, header in enumerate(headers):
        table.add_column(
            header,
            justify="right" if index in right else "left",
            no_wrap=not terminal,
            overflow="fold",
        )
    for row in rows:
        table.add_row(*(printable(str(cell)) for cell in row))
    if terminal:
        plain.print(table)
        return
    # Nothing is cut or wrapped where a program may read it.
    text = io.StringIO()
    wide = Console(file=text, width=100_000, markup=False, emoji=False, highlight=False)
    wide.print(table)
    for line in text.getvalue().splitlines():
        print(line.rstrip())
    sys.stdout.flush()


def share(part: int, whole: int) -> str:
    """A share that may be very small: `0.023 %`."""
    if part in (0, whole):
        return "100 %" if part else "0"
    value = 100 * part / whole
    if value < 0.001:
        return "<0.001 %"
    return f"{value:.2g} %" if value < 10 else f"{min(value, 99.9):.1f} %"


def percent(part: int, whole: int) -> str:
    """A share: `49 %`; never 100 % unless it is all, and never 0 % unless it is nothing."""
    if whole == 0:
        return "-"
    rounded = round(100 * part / whole)
    if part and rounded == 0:
        return "<1 %"
    return ">99 %" if part < whole and rounded == 100 else f"{rounded} %"
