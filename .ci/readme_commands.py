"""Take the commands out of the README, so that CI runs what the reader is told to run.

A fenced block counts when an HTML comment stands before it:

    <!-- ci: test -->    the one command that installs and runs the tests
    <!-- ci: demo -->    the one command that installs and runs the demo
    <!-- ci: run -->     any further commands: the tour

Usage: readme_commands.py README.md FOLDER
writes one script for each block, numbered in the order of the README: FOLDER/01-test.sh, ...
"""

import re
import sys
from pathlib import Path
from typing import NamedTuple

KINDS = ("test", "demo", "run")
ONCE = ("test", "demo")

_MARK = re.compile(r"<!--\s*ci:(?P<kind>.*?)-->\s*")
_FENCE = re.compile(r"(?P<fence>`{3,}|~{3,})(?P<info>[^`]*)")


class Block(NamedTuple):
    """The commands of one marked block."""

    kind: str
    line: int
    commands: str


class ReadmeError(Exception):
    """The README's marks and blocks do not fit together."""


def blocks(text: str) -> list[Block]:
    """Return the marked blocks of a README in order.

    Raises:
        ReadmeError: a mark of unknown kind, a mark without a block, an empty block or one that is
            never closed, or not exactly one block each of "test" and "demo".
    """
    found = list(_marked(text.splitlines()))
    for kind in ONCE:
        lines = [block.line for block in found if block.kind == kind]
        if len(lines) != 1:
            where = f" (lines {', '.join(map(str, lines))})" if lines else ""
            raise ReadmeError(f"want exactly one block marked '{kind}', found {len(lines)}{where}")
    return found


def _marked(lines: list[str]) -> list[Block]:
    found: list[Block] = []
    kind: str | None = None
    marked_at = 0
    rest = iter(enumerate(lines, start=1))
    for number, line in rest:
        if fence := _FENCE.fullmatch(line):
            body = _body(rest, fence["fence"], number)
            if kind is not None:
                if not body.strip():
                    raise ReadmeError(f"line {number}: the block marked '{kind}' is empty")
                found.append(Block(kind, number, body))
                kind = None
        elif kind is not None and line.strip():
            raise ReadmeError(f"line {marked_at}: no fenced block follows the mark '{kind}'")
        elif mark := _MARK.fullmatch(line):
            kind, marked_at = mark["kind"].strip(), number
            if kind not in KINDS:
                raise ReadmeError(f"line {number}: unknown mark '{kind}', want {', '.join(KINDS)}")
    if kind is not None:
        raise ReadmeError(f"line {marked_at}: no fenced block follows the mark '{kind}'")
    return found


def _body(rest: "enumerate[str]", fence: str, opened_at: int) -> str:
    body: list[str] = []
    for _, line in rest:
        if line.rstrip().strip(fence[0]) == "" and len(line.rstrip()) >= len(fence):
            return "".join(f"{line}\n" for line in body)
        body.append(line)
    raise ReadmeError(f"line {opened_at}: the block is never closed")


def main(readme: str, folder: str) -> int:
    """Write the blocks of `readme` as scripts into `folder`; return the exit code."""
    try:
        found = blocks(Path(readme).read_text(encoding="utf-8"))
    except (OSError, ReadmeError) as error:
        print(f"{readme}: {error}", file=sys.stderr)
        return 2
    for index, block in enumerate(found, start=1):
        script = Path(folder, f"{index:02}-{block.kind}.sh")
        script.write_text(block.commands, encoding="utf-8")
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], sys.argv[2]))
