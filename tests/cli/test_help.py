"""What the commands say of themselves: examples that exist, and completions for shells."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from intonnx.cli.app import EXAMPLES

from .conftest import ROOT, Invoke


def completions(words: str) -> list[str]:
    """What a shell is offered for the last of these words."""
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    asked = {
        "_INTONNX_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split()) - 1),
    }
    done = subprocess.run(
        [sys.executable, "-m", "intonnx"], capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": path, **asked},
    )  # fmt: skip
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("intonnx com", ["compile"]),
        ("intonnx run --pro", ["--profile", "--profile-trace"]),
        ("intonnx compile --target in", ["integer"]),
    ],
)
def test_shells_complete_commands_options_and_choices(words: str, offered: list[str]) -> None:
    assert completions(words) == offered


@pytest.mark.parametrize("command", EXAMPLES)
def test_every_command_ends_its_help_with_examples(command: str, invoke: Invoke) -> None:
    text = invoke(command, "--help").stdout
    assert "For example:" in text
    for example in EXAMPLES[command]:
        assert example in text
        program, used, *words = example.split()
        assert (program, used) == ("intonnx", command)
        for word in words:
            if word.startswith("-"):
                assert word in text.partition("For example:")[0]


def test_every_command_has_examples(invoke: Invoke) -> None:
    listed = invoke("--help").stdout.partition("Commands:")[2]
    names = [line.split()[0] for line in listed.splitlines() if line.startswith("  ")]
    assert set(EXAMPLES) <= set(names)
    assert len(EXAMPLES) == 7
