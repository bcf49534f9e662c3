"""A progress bar on stderr, for work that takes more than a second on a terminal."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Generator
from typing import Any

PATIENCE = 1.0
"""Seconds before the bar appears."""

Advance = Callable[[int, int], None]
"""Called with how many steps are done, and of how many."""


@contextlib.contextmanager
def working(label: str) -> Generator[Advance, None, None]:
    """Show that work goes on inside; the bar pulses until `advance(done, total)` is called."""
    if not sys.stderr.isatty():
        yield lambda done, total: None
        return
    bar = _Bar(label)
    try:
        yield bar.advance
    finally:
        bar.close()


class _Bar:
    def __init__(self, label: str) -> None:
        self._label = label
        self._state: tuple[int, int | None] = (0, None)
        self._lock = threading.Lock()
        self._progress: Any = None
        self._closed = False
        self._timer = threading.Timer(PATIENCE, self._appear)
        self._timer.daemon = True
        self._timer.start()

    def advance(self, done: int, total: int) -> None:
        with self._lock:
            self._state = (done, total)
            if self._progress is not None:
                self._progress.update(self._task, completed=done, total=total)

    def close(self) -> None:
        self._timer.cancel()
        with self._lock:
            self._closed = True
            if self._progress is not None:
                self._progress.stop()

    def _appear(self) -> None:
        from rich.console import Console
        from rich.progress import Progress

        with self._lock:
            if self._closed:
                return
            self._progress = Progress(console=Console(stderr=True), transient=True)
            done, total = self._state
            self._task = self._progress.add_task(self._label, completed=done, total=total)
            self._progress.start()
