"""What the README shows is what the commands print."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import ROOT, Invoke

README = ROOT / "README.md"
SHOWN = re.compile(
    r"<!-- ci: run -->\n```bash\n(?P<commands>.*?)```\n(?:\n```\n(?P<output>.*?)```\n)?", re.DOTALL
)
PYTHON = re.compile(r"\.venv/bin/python - <<'PYTHON'\n(.*)PYTHON\n", re.DOTALL)

pytestmark = pytest.mark.skipif(not README.exists(), reason="reads the repository, not the product")


@pytest.fixture
def demo(invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A folder with the files of the demo; gives what the demo printed."""
    monkeypatch.chdir(tmp_path)
    return invoke("demo").stdout


def test_the_tour_prints_what_the_readme_says(demo: str, invoke: Invoke) -> None:
    text = README.read_text(encoding="utf-8")
    blocks = list(SHOWN.finditer(text))
    assert len(blocks) == text.count("<!-- ci: run -->")
    for block in blocks:
        if session := PYTHON.fullmatch(block["commands"]):
            with contextlib.redirect_stdout(io.StringIO()) as stdout:
                exec(compile(session[1], str(README), "exec"), {})
            printed = stdout.getvalue()
        else:
            lines = block["commands"].replace("\\\n", " ").splitlines()
            printed = "".join(run(line, invoke) for line in lines)
        assert_shown(block["output"] or "", printed)


def test_the_demo_prints_what_the_readme_says(demo: str) -> None:
    text = README.read_text(encoding="utf-8")
    after = text.split("<!-- ci: demo -->")[1].split("```\n")
    assert_shown(after[2], demo)


def run(line: str, invoke: Invoke) -> str:
    command, _, _ = line.partition(" > ")
    program, *arguments = shlex.split(command)
    if program == ".venv/bin/python":
        done = subprocess.run(
            [sys.executable, *arguments], capture_output=True, text=True, check=True
        )
        return done.stdout
    assert program == ".venv/bin/intonnx"
    result = invoke(*arguments)
    assert result.exit_code == 0, result.stderr
    return result.stdout


def assert_shown(expected: str, printed: str) -> None:
    """Every line that the README shows was printed, in this order."""
    rest = iter(_same_everywhere(printed).splitlines())
    for line in _same_everywhere(expected).splitlines():
        assert line in rest, f"the README shows: {line}\nprinted was:\n{printed}"


def _same_everywhere(text: str) -> str:
    """Without what depends on the float arithmetic of the CPU: onnxruntime on the original."""
    text = re.sub(r"^(onnxruntime, the model) .*$", r"\1", text, flags=re.MULTILINE)
    return re.sub(r"images, [\d.]+ % of the outputs differ", "images, some differ", text)
