"""How the program ends: exit codes, and one line for whatever went wrong.

0: done. 1: the answer is no. 2: bad use, bad input, or an output that cannot be written.
130: interrupted. 141: the reader of a pipe went away. These two are what shells report for the
signals SIGINT and SIGPIPE.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Any

import typer
from typer.core import TyperGroup

from intonnx.ir.errors import IntonnxError

INTERRUPTED = 130
PIPE_CLOSED = 141
TRACEBACK_SWITCH = "INTONNX_TRACEBACK"
"""With this environment variable set, an error that is a defect of the program is shown whole."""


class Program(TyperGroup):
    """The root command; it maps every exception to an exit code and one line on stderr."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command line and leave with its exit code; see the head of this file."""
        arguments = sys.argv[1:] if args is None else list(args)
        # Where a shell asks for completions, this answers and leaves.
        self._main_shell_completion(extra, prog_name or "intonnx", complete_var)

        def run() -> int:
            try:
                with self.make_context("intonnx", arguments, **extra) as context:
                    self.invoke(context)
            except typer.Exit as done:
                return done.exit_code
            return 0

        sys.exit(exit_code(run))


def exit_code(run: Callable[[], int]) -> int:
    """The exit code of `run`; an exception becomes one line on stderr."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Names in models may hold what the terminal's encoding cannot say.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        code = run()
        sys.stdout.flush()
        return code
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except BrokenPipeError:
        _abandon_stdout()
        return PIPE_CLOSED
    except Exception as error:
        if isinstance(error, OSError):
            _abandon_stdout()
        print(f"intonnx: error: {printable(cause(error))}", file=sys.stderr)
        return 2


def cause(error: Exception) -> str:
    """What went wrong, as one line."""
    if isinstance(error, IntonnxError):
        return str(error)
    if isinstance(error, OSError):
        return f"{error.filename or 'standard output'}: {error.strerror or error}"
    if isinstance(error, MemoryError):
        return "there is not enough memory"
    # The errors of typer have this, and so had those of click, which it is built on.
    usage: Callable[[], str] | None = getattr(error, "format_message", None)
    if usage is not None:
        return f"{_one_line(usage()).rstrip('.')} (see intonnx --help)"
    if os.environ.get(TRACEBACK_SWITCH):
        traceback.print_exception(error)
    return (
        f"a defect of intonnx, please report it: {type(error).__name__}: {_one_line(str(error))} "
        f"({TRACEBACK_SWITCH}=1 shows where)"
    )


def printable(text: str) -> str:
    """The text without what a terminal would obey: control characters are spelled out."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _abandon_stdout() -> None:
    """Keep the interpreter from flushing a broken stdout, and complaining, when it ends."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
