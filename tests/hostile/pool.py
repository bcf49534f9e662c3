"""Children that handle many cases each; one that dies or hangs is replaced: its case is wrong."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import select
import struct
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from .cases import Case, Outcome

SECONDS = 10.0
TESTS = Path(__file__).resolve().parent.parent


class Pool:
    """One child at a time: the tests' time is its CPU's."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._child: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self._stop()

    def outcomes(self, cases: Iterable[Case]) -> Iterator[Outcome]:
        """What becomes of each case, in order."""
        for case in cases:
            yield self.outcome(case)

    def outcome(self, case: Case) -> Outcome:
        """What becomes of this case."""
        child = self._running()
        assert child.stdin is not None
        assert child.stdout is not None
        data = pickle.dumps(case)
        try:
            child.stdin.write(struct.pack("<Q", len(data)) + data)
            child.stdin.flush()
        except BrokenPipeError:
            return self._ended(case, "the child had ended before")
        if not select.select([child.stdout], [], [], SECONDS)[0]:
            return self._ended(case, f"no answer after {SECONDS:g} s")
        answer = child.stdout.readline()
        if not answer:
            return self._ended(case, "the child crashed")
        kind, detail, seconds = json.loads(answer)
        return Outcome(case.name, kind, detail, seconds)

    def _running(self) -> subprocess.Popen[bytes]:
        if self._child is None:
            tests, sources = str(TESTS), str(TESTS.parent / "src")
            paths = os.pathsep.join([tests, sources, os.environ.get("PYTHONPATH", "")])
            threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1")
            with open(self._folder / "stderr", "wb") as said:
                self._child = subprocess.Popen(
                    [sys.executable, "-X", "faulthandler", "-m", "hostile.worker",
                     str(self._folder / "case")],
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said,
                    env={**os.environ, "PYTHONPATH": paths, **threads},
                )  # fmt: skip
            # A child that has just started must not pay for its imports from the case's time.
            warm = Case("", "model.onnx", b"")
            first = self.outcome(warm)
            assert first.kind == "refused", first
            assert self._child is not None
        return self._child

    def _ended(self, case: Case, what: str) -> Outcome:
        code = self._stop()
        said = (self._folder / "stderr").read_text("utf-8", "replace").strip()[-600:]
        return Outcome(case.name, "wrong", f"{what} (exit code {code}): {said}", SECONDS)

    def _stop(self) -> int:
        child, self._child = self._child, None
        if child is None:
            return 0
        child.kill()
        for stream in (child.stdin, child.stdout):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()
        return child.wait()
