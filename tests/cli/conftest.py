"""One small model with a convolution and an operator that stays float, and how to run commands."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from typer.testing import CliRunner, Result

from intonnx.cli.app import app
from support.models import Builder, Fed, Held, s8, u8

ROOT = Path(__file__).resolve().parent.parent.parent
Invoke = Callable[..., Result]


def conv_model(weight_offset: int = 0) -> onnx.ModelProto:
    """x -> Q -> DQ -> Conv -> Q -> DQ -> Hardmax -> y, over a symbolic batch."""
    rng = np.random.default_rng(1)
    weights = rng.integers(-90, 90, (4, 3, 3, 3))
    weights[0, 0, 0, 0] += weight_offset
    build = Builder(17)
    x = build.operand(Fed("x", ("N", 3, 6, 6), u8(0.02, 114)), 0)
    w = build.operand(Held(weights, s8(0.01)), 1)
    conv = build.node("Conv", [x, w], name="conv", pads=[1, 1, 1, 1])
    real = build.dequantize(build.quantize(conv, u8(0.05, 100), "codes"), u8(0.05, 100))
    build.node("Hardmax", [real], name="y")
    build.output("y", np.float32)
    return build.model()


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """The small model in a file."""
    path = tmp_path / "model.onnx"
    path.write_bytes(conv_model().SerializeToString())
    return path


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """An array for its input `x`."""
    path = tmp_path / "x.npy"
    np.save(path, np.random.default_rng(2).normal(size=(2, 3, 6, 6)).astype(np.float32))
    return path


@pytest.fixture
def invoke() -> Invoke:
    """Run a command in this process."""

    def run(*arguments: str | Path) -> Result:
        return CliRunner().invoke(app, [str(argument) for argument in arguments])

    return run


def start(*arguments: str, code: str = "", **options: Any) -> subprocess.CompletedProcess[bytes]:
    """Run `python -m intonnx`, or `code`, in a process of its own."""
    command = ["-c", code] if code else ["-m", "intonnx"]
    paths = [str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    if not (ROOT / "src").is_dir():  # the tests of an installed wheel
        environment = dict(os.environ)
    options = {"capture_output": True, "env": environment, "timeout": 60, **options}
    return subprocess.run([sys.executable, *command, *arguments], check=False, **options)


@pytest.fixture
def process() -> Callable[..., subprocess.CompletedProcess[bytes]]:
    """Run a command in a process of its own."""
    return start
