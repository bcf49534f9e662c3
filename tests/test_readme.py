"""The README's commands can be taken out of it, and CI notices when its marks are wrong."""

import runpy
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = ROOT / ".ci" / "readme_commands.py"

pytestmark = pytest.mark.skipif(not SCRIPT.exists(), reason="reads the repository, not the product")

TEST = "<!-- ci: test -->\n```sh\nmake test\n```\n"
DEMO = "<!-- ci: demo -->\n\n```sh\nmake demo &&\n  echo done\n```\n"


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    return runpy.run_path(str(SCRIPT))


def test_blocks_come_in_order_with_their_commands_verbatim(script: dict[str, Any]) -> None:
    plain = "```sh\nnot marked\n```\n"
    tour = "<!-- ci: run -->\n~~~\na\n```\nb\n~~~\n"
    text = f"# Title\n\n{DEMO}\n{plain}{TEST}\n{tour}"
    assert [(b.kind, b.commands) for b in script["blocks"](text)] == [
        ("demo", "make demo &&\n  echo done\n"),
        ("test", "make test\n"),
        ("run", "a\n```\nb\n"),
    ]


def test_a_mark_inside_a_block_is_text(script: dict[str, Any]) -> None:
    text = f"```\n<!-- ci: run -->\n```\n{TEST}{DEMO}"
    assert [b.kind for b in script["blocks"](text)] == ["test", "demo"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("", "exactly one block marked 'test', found 0", id="no test"),
        pytest.param(TEST, "exactly one block marked 'demo', found 0", id="no demo"),
        pytest.param(TEST + TEST, r"'test', found 2 \(lines 2, 6\)", id="two tests"),
        pytest.param("<!-- ci: tset -->\n", "line 1: unknown mark 'tset'", id="unknown"),
        pytest.param("<!-- ci: run -->\ntext\n", "line 1: no fenced block", id="text between"),
        pytest.param("<!-- ci: run -->\n", "line 1: no fenced block", id="mark at the end"),
        pytest.param("<!-- ci: run -->\n```\n\n```\n", "line 2: .* is empty", id="empty"),
        pytest.param("```\nendless\n", "line 1: the block is never closed", id="never closed"),
    ],
)
def test_wrong_marks_are_refused(script: dict[str, Any], text: str, message: str) -> None:
    with pytest.raises(script["ReadmeError"], match=message):
        script["blocks"](text)


def test_the_scripts_sort_in_the_order_of_the_readme(
    script: dict[str, Any], tmp_path: Path
) -> None:
    readme = tmp_path / "README.md"
    readme.write_text(TEST + DEMO, encoding="utf-8")
    assert script["main"](str(readme), str(tmp_path)) == 0
    assert sorted(p.name for p in tmp_path.glob("*.sh")) == ["01-test.sh", "02-demo.sh"]
    assert (tmp_path / "01-test.sh").read_text(encoding="utf-8") == "make test\n"


def test_an_unusable_readme_is_one_line(
    script: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert script["main"](str(tmp_path / "absent.md"), str(tmp_path)) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_our_own_readme_is_marked(script: dict[str, Any]) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    kinds = [block.kind for block in script["blocks"](text)]
    assert kinds.count("test") == kinds.count("demo") == 1
