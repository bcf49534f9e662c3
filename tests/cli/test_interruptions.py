"""Every command that writes, on a full disk and interrupted in the middle: nothing half-written.

The full disk is a limit on the size of files of the process; the interrupt comes when a file's
contents are being brought to the disk.
"""

from __future__ import annotations

import subprocess
import sys
from importlib import resources
from pathlib import Path

import pytest

from .test_process import Process

_FULL = """
import resource, sys
from intonnx.cli import main
limit = 700
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
sys.argv = ["intonnx", *sys.argv[1:]]
main()
"""
_INTERRUPTED = """
import os, signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in the background ignore it
def interrupted(descriptor):
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(10)  # another thread of the process may have taken the signal first
os.fsync = interrupted
from intonnx.cli import main
sys.argv = ["intonnx", *sys.argv[1:]]
main()
"""

COMMANDS = {
    "onnx": ["compile", "{model}", "-o", "{out}/m.onnx"],
    "saved graph": ["compile", "{model}", "-o", "{out}/m.intonnx", "--target", "integer"],
    "program": ["compile", "{integer}", "-o", "{out}/m.pyz"],
    "outputs": ["run", "{model}", "-i", "x={image}", "-o", "{out}/y.npz"],
    "trace": ["run", "{model}", "-i", "x={image}", "-o", "{out}/y.npz", "--trace", "{out}/t.npz"],
    "profile": ["run", "{model}", "-i", "x={image}", "-o", "{out}/y.npz",
                "--profile-trace", "{out}/p.json"],
    "report": ["report", "{model}", "-o", "{out}/r.html"],
    "demo": ["demo", "-o", "{out}/demo"],
}  # fmt: skip


@pytest.fixture(params=COMMANDS.values(), ids=COMMANDS)
def arguments(
    request: pytest.FixtureRequest, model: Path, image: Path, tmp_path: Path
) -> list[str]:
    """A command whose output goes to the folder `out`."""
    (tmp_path / "out").mkdir()
    integer = resources.files("intonnx.demo_data") / "digits_qdq.onnx"
    given = {"model": model, "integer": integer, "image": image, "out": tmp_path / "out"}
    return [part.format(**given) for part in request.param]


def outcome(code: str, arguments: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False
    )


@pytest.mark.skipif(sys.platform == "win32", reason="needs RLIMIT_FSIZE")
def test_a_full_disk_is_one_line_and_leaves_nothing(arguments: list[str], tmp_path: Path) -> None:
    done = outcome(_FULL, arguments)
    assert done.returncode == 2, done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith("intonnx: error: ")
    assert "cannot be written" in line
    assert [path for path in (tmp_path / "out").rglob("*") if path.is_file()] == []


def test_an_interrupt_while_writing_leaves_nothing(arguments: list[str], tmp_path: Path) -> None:
    done = outcome(_INTERRUPTED, arguments)
    assert done.returncode == 130, done.stderr
    assert done.stderr == ""
    assert [path for path in (tmp_path / "out").rglob("*") if path.is_file()] == []


def test_what_was_there_before_stays(model: Path, tmp_path: Path) -> None:
    target = tmp_path / "m.onnx"
    target.write_bytes(b"before")
    arguments = ["compile", str(model), "-o", str(target)]
    assert outcome(_FULL, arguments).returncode == 2
    assert outcome(_INTERRUPTED, arguments).returncode == 130
    assert target.read_bytes() == b"before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.onnx", "model.onnx"]


def test_a_folder_that_is_not_there_is_refused_before_any_work(
    process: Process, model: Path, tmp_path: Path
) -> None:
    done = process("compile", str(model), "-o", str(tmp_path / "none" / "m.onnx"))
    assert done.returncode == 2
    assert b"there is no folder" in done.stderr
