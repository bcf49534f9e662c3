"""What only a process of its own shows: start-up, pipes, signals, the end of stdout."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Process = Callable[..., subprocess.CompletedProcess[bytes]]

HEAVY = "{'onnx', 'onnxruntime', 'networkx', 'numpy', 'pydantic'}"


def test_help_imports_nothing_heavy(process: Process) -> None:
    code = f"""
import sys
sys.argv = ["intonnx", "--help"]
from intonnx.cli import main
try:
    main()
except SystemExit as end:
    assert end.code == 0, end
found = {HEAVY} & set(sys.modules)
assert not found, found
"""
    done = process(code=code)
    assert done.returncode == 0, done.stderr
    assert b"inspect" in done.stdout


def test_importing_intonnx_imports_nothing_heavy(process: Process) -> None:
    code = f"import sys, intonnx; found = {HEAVY} & set(sys.modules); assert not found, found"
    assert process(code=code).returncode == 0


def test_a_closed_pipe_is_quiet(model: Path, process: Process) -> None:
    read, write = os.pipe()
    os.close(read)
    done = process("inspect", str(model), capture_output=False, stdout=write, stderr=-1)
    os.close(write)
    assert done.returncode == 141
    assert done.stderr == b""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_under_stdout_is_one_line(model: Path, process: Process) -> None:
    with open("/dev/full", "wb") as full:
        done = process("inspect", str(model), capture_output=False, stdout=full, stderr=-1)
    assert done.returncode == 2
    assert done.stderr == b"intonnx: error: standard output: No space left on device\n"


def test_an_interrupt_is_quiet(process: Process) -> None:
    code = """
import os, signal, sys, time
sys.argv = ["intonnx", "inspect", "x"]
signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in the background ignore it
import intonnx.cli.files
def interrupted(path):
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(10)  # another thread of the process may have taken the signal first
intonnx.cli.files.open_graph = interrupted
from intonnx.cli import main
main()
"""
    done = process(code=code)
    assert done.returncode == 128 + signal.SIGINT
    assert done.stderr == b""
    assert done.stdout == b""


def test_names_that_the_terminal_cannot_say(model: Path, process: Process) -> None:
    other = model.with_name("größe.onnx")
    other.write_bytes(model.read_bytes())
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    source = str(Path(__file__).resolve().parent.parent.parent / "src")
    environment["PYTHONPATH"] = os.pathsep.join([source, environment.get("PYTHONPATH", "")])
    done = process("inspect", str(other), env=environment)
    assert done.returncode == 0, done.stderr
    assert b"gr\\xf6\\xdfe.onnx" in done.stdout


def test_a_terminal_gets_tables_and_a_progress_bar_after_a_while(process: Process) -> None:
    """The bar goes to stderr; it is on time because the patience is set to nothing."""
    code = """
import sys, time
import intonnx.cli.progress as progress
from intonnx.cli.display import show_table
progress.PATIENCE = 0.0
with progress.working("comparing") as advance:
    advance(1, 2)
    time.sleep(0.5)
show_table(("name", "n"), [("a", 1)], right=(1,))
"""
    parent, child = pty.openpty()
    environment = {**os.environ, "TERM": "xterm"}
    source = str(Path(__file__).resolve().parent.parent.parent / "src")
    environment["PYTHONPATH"] = os.pathsep.join([source, environment.get("PYTHONPATH", "")])
    started = subprocess.run(
        [sys.executable, "-c", code], stdout=child, stderr=child, env=environment, check=False
    )
    os.close(child)
    shown = os.read(parent, 100_000).decode()
    os.close(parent)
    assert started.returncode == 0, shown
    assert "comparing" in shown
    assert "50%" in shown
    assert "─" in shown
