"""docs/add-an-operator.md, followed to the letter in a copy of the tree."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "add-an-operator.md"
_FILE = re.compile(r"<!-- file: (\S+) -->\n```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COPIED = ("importer", "ir", "lowering", "src", "tests", "pyproject.toml", "README.md")


@pytest.mark.skipif(not PAGE.exists(), reason="the tests run outside the repository")
def test_an_operator_is_added_by_its_files_alone(tmp_path: Path) -> None:
    for name in _COPIED:
        source = ROOT / name
        if source.is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
            shutil.copytree(source, tmp_path / name, symlinks=True, ignore=ignored)
        else:
            shutil.copy(source, tmp_path / name)
    files = dict(_FILE.findall(PAGE.read_text()))
    assert len(files) == 5
    for name, text in files.items():
        target = tmp_path / name
        assert not target.exists(), f"{name} is there already: the page wants another operator"
        target.write_text(text)
    tests = ["tests/ops/test_trilu.py", "tests/test_layout.py", "-k", "trilu or operator"]
    path = os.pathsep.join([str(tmp_path / "src"), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *tests],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
