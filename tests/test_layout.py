"""The tree is what the design says: packages, mirrored rooms, short files, one name installed."""

import json
import os
import re
import tomllib
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
WINGS = ("importer", "ir", "lowering")
LONGEST = 400

# Rooms that mirror ir/ops, and how an operator's file is called there.
ROOMS = {
    "importer/rules": "{}.py",
    "lowering/integer": "{}.py",
    "lowering/qlinear": "{}.py",
    "tests/ops": "test_{}.py",
}

# (room, operator): why the operator needs no file there. Keep it short: an entry is for an operator
# that truly has no spelling in that room, not for one that is not written yet.
EXCEPTIONS: dict[tuple[str, str], str] = {
    ("importer/rules", "onnx_op"): "what an operator without a rule becomes",
    ("importer/rules", "storage_cast"): "no ONNX operator: where plain integers get parameters",
}

# Files of a room that are no operators. Other helpers in a room begin with an underscore.
NOT_OPERATORS = {
    "lowering/integer": {"epilogue", "packed", "products", "exact", "kernel", "windows"},
    "lowering/qlinear": {"emitter", "opset", "registry", "saturation", "writing"},
}

in_repository = pytest.mark.skipif(
    not (ROOT / "pyproject.toml").exists(), reason="reads the repository, not the product"
)


def walk(folder: Path) -> Iterator[tuple[Path, list[str]]]:
    """Yield each folder with its Python files, without following links or entering hidden ones."""
    for name, folders, files in os.walk(folder):
        folders[:] = sorted(
            f for f in folders if not f.startswith((".", "__pycache__")) and f != "build"
        )
        yield Path(name), sorted(f for f in files if f.endswith(".py"))


def operators() -> list[str]:
    """The names of the operator files: ir/ops says what there is."""
    return sorted(p.stem for p in (ROOT / "ir/ops").glob("[!_]*.py"))


@pytest.fixture(scope="module")
def setuptools_table() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]


@in_repository
def test_packages_are_those_of_the_tree(setuptools_table: dict[str, Any]) -> None:
    roots = {"intonnx": ROOT / "src/intonnx", **{f"intonnx.{w}": ROOT / w for w in WINGS}}
    tree = {
        ".".join((name, *folder.relative_to(root).parts))
        for name, root in roots.items()
        for folder, files in walk(root)
        if files and not folder.is_symlink()
    }
    assert setuptools_table["packages"] == sorted(tree)


@in_repository
def test_every_package_has_an_init(setuptools_table: dict[str, Any]) -> None:
    folders = [f"src/{package.replace('.', '/')}" for package in setuptools_table["packages"]]
    assert [f for f in folders if not (ROOT / f / "__init__.py").is_file()] == []


@in_repository
@pytest.mark.parametrize("wing", WINGS)
def test_each_wing_is_linked_into_the_source_folder(wing: str) -> None:
    link = ROOT / "src/intonnx" / wing
    assert link.is_symlink(), f"{link} is no link; on Windows clone with core.symlinks=true"
    assert os.readlink(link) == f"../../{wing}"


@in_repository
@pytest.mark.parametrize("room", ROOMS)
def test_every_operator_has_its_file_in_every_room(room: str) -> None:
    names = [op for op in operators() if (room, op) not in EXCEPTIONS]
    missing = [ROOMS[room].format(op) for op in names if not has_file(room, op)]
    assert names, "ir/ops holds no operator"
    assert missing == [], f"{room} lacks these files of ir/ops"


@in_repository
@pytest.mark.parametrize("room", [room for room in ROOMS if not room.startswith("tests")])
def test_no_room_has_an_operator_that_the_ir_does_not_know(room: str) -> None:
    found = {p.stem for p in (ROOT / room).glob("[!_]*.py")}
    assert sorted(found - NOT_OPERATORS.get(room, set()) - set(operators())) == []


@in_repository
def test_the_exceptions_are_still_needed() -> None:
    known = set(operators())
    stale = [
        f"{op} in {room}"
        for room, op in EXCEPTIONS
        if room not in ROOMS or op not in known or has_file(room, op)
    ]
    assert stale == []


def has_file(room: str, operator: str) -> bool:
    return (ROOT / room / ROOMS[room].format(operator)).is_file()


@in_repository
def test_no_file_is_longer_than_the_limit() -> None:
    files = [
        folder / f for top in (ROOT, ROOT / ".ci") for folder, names in walk(top) for f in names
    ]
    lengths = {f.relative_to(ROOT).as_posix(): len(f.read_text().splitlines()) for f in files}
    assert lengths.keys() >= {"tests/test_layout.py", ".ci/readme_commands.py"}
    assert {name: n for name, n in lengths.items() if n > LONGEST} == {}


@in_repository
def test_the_lock_names_only_the_public_index() -> None:
    hosts = set(re.findall(r'"\w+://([^/"]+)', (ROOT / "uv.lock").read_text()))
    assert hosts == {"pypi.org", "files.pythonhosted.org"}


def test_the_installed_distribution_holds_one_package() -> None:
    try:
        dist = distribution("intonnx")
    except PackageNotFoundError:
        pytest.skip("not installed: .ci/run checks the wheel")
    origin = json.loads(dist.read_text("direct_url.json") or "{}")
    if origin.get("dir_info", {}).get("editable"):
        pytest.skip("installed as editable: .ci/run checks the wheel")
    files = {f.as_posix() for f in dist.files or ()}
    tops = {f.split("/")[0] for f in files if not f.startswith("../")}
    assert tops == {"intonnx", f"intonnx-{dist.version}.dist-info"}
    assert files >= {
        "intonnx/__init__.py",
        "intonnx/py.typed",
        "intonnx/demo_data/digits_qdq.onnx",
        "intonnx/demo_data/digits_test.npz",
        *(f"intonnx/{wing}/__init__.py" for wing in WINGS),
    }
    assert not any(f.startswith("intonnx/") and "/tests/" in f for f in files)
