"""Every code block of the pages in docs/ runs, in order, and prints what is shown."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = ("tutorial", "bad-layer", "golden-vectors", "int8-on-x86")
"""Those with code; the later ones use the files of the first."""
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """A fenced block: its language, "" for shown output."""

    language: str
    text: str


def blocks(page: str) -> list[Block]:
    return [Block(*found) for found in _FENCE.findall((DOCS / f"{page}.md").read_text())]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("documentation")


def run(block: Block, folder: Path) -> str:
    """What a block prints. The commands are those of the Python that runs the tests."""
    command = {"python": [sys.executable, "-c", block.text],
               "bash": ["bash", "-e", "-c", block.text]}[block.language]  # fmt: skip
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, env={**os.environ, "PATH": path},
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{block.text}\n{done.stderr}"
    return done.stdout


@pytest.mark.skipif(not DOCS.is_dir(), reason="the tests run outside the repository")
def test_the_pages_run_and_print_what_they_show(folder: Path) -> None:
    for page in PAGES:
        printed = ""
        for block in blocks(page):
            if block.language:
                printed = run(block, folder)
                continue
            for line in block.text.splitlines():
                assert line in printed, f"{page}: '{line}' is not in\n{printed}"


@pytest.mark.skipif(not DOCS.is_dir(), reason="the tests run outside the repository")
def test_every_page_is_in_the_navigation_and_its_links_exist() -> None:
    navigation = (DOCS.parent / "mkdocs.yml").read_text()
    for page in sorted(DOCS.rglob("*.md")):
        name = page.relative_to(DOCS).as_posix()
        assert f" {name}\n" in navigation, name
        for link in re.findall(r"\]\(([^)#]+\.md)[^)]*\)", page.read_text()):
            assert (page.parent / link).exists(), f"{name} links to {link}"
