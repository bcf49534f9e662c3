"""Programs: run where there is numpy and nothing else, they give what `intonnx.compile` gives."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import venv
import zipfile
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

import intonnx
from boundaries.elementwise import ELEMENTWISE
from boundaries.matrix import MATRIX
from boundaries.movers import MOVERS
from boundaries.patterns import Case, cases
from boundaries.pools import POOLS
from intonnx.ir.errors import CompileFailure, TextFailure
from intonnx.standalone.bundle import module_name, write_program
from support.corpus import corpus_models
from support.models import Array

RUN = """\
import json, sys
import numpy as np
from importlib import import_module
others = [m for m in ("pydantic", "networkx", "onnx", "typer", "intonnx") if __import__("importlib.util").util.find_spec(m)]
assert not others, others
for line in sys.stdin:
    name, program, given, out = json.loads(line)
    sys.path.insert(0, program)
    with np.load(given) as inputs:
        np.savez(out, **import_module(name).run(dict(inputs)))
    sys.path.pop(0)
"""  # noqa: E501


@pytest.fixture(scope="session")
def numpy_only(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of a venv that holds numpy alone."""
    home = tmp_path_factory.mktemp("venv")
    venv.create(home, with_pip=False, symlinks=True)
    (site,) = home.glob("lib/python*/site-packages")
    there = Path(np.__file__).parent
    for folder in (there, there.with_name("numpy.libs")):
        if folder.is_dir():
            (site / folder.name).symlink_to(folder)
    return home / "bin/python"


def run(python: Path, *arguments: object, text: str = "") -> subprocess.CompletedProcess[str]:
    """Run the interpreter with nothing of this environment."""
    command = [str(python), "-I", *map(str, arguments)]
    clean = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    return subprocess.run(
        command, input=text, capture_output=True, text=True, check=False, env=clean, timeout=300
    )


def telling_cases() -> Iterator[Case]:
    """Cases of the boundary table such that each operator of the IR is in one at least."""
    seen: set[type] = set()
    for case in cases([*MATRIX, *ELEMENTWISE, *POOLS, *MOVERS]):
        if case.pattern.stays or case.storage is not np.uint8 or not case.from_codes:
            continue
        graph = intonnx.import_model(case.pattern.draw(case.storage, case.from_codes, 0)[0])
        ops = {type(node.op) for node in graph.nodes}
        if not ops <= seen:
            seen |= ops
            yield case


def test_every_operator_runs_with_numpy_alone(numpy_only: Path, tmp_path: Path) -> None:
    jobs: list[str] = []
    wanted: dict[Path, dict[str, Array]] = {}
    for index, case in enumerate(telling_cases()):
        model, draw = case.pattern.draw(case.storage, case.from_codes, 0)
        graph = intonnx.import_model(model)
        paths = [tmp_path / f"case{index}{end}" for end in (".pyz", ".in.npz", ".out.npz")]
        write_program(graph, paths[0])
        np.savez(paths[1], allow_pickle=False, **draw.inputs)
        jobs.append(json.dumps([f"case{index}", *map(str, paths)]))
        wanted[paths[2]] = intonnx.compile(graph).run(draw.inputs)
    done = run(numpy_only, "-c", RUN, text="\n".join(jobs))
    assert done.returncode == 0, done.stderr
    assert len(wanted) > 25
    for path, outputs in wanted.items():
        with np.load(path) as found:
            assert set(found.files) == set(outputs)
            for name, array in outputs.items():
                assert found[name].dtype == array.dtype
                np.testing.assert_array_equal(found[name], array, err_msg=f"{path}: {name}")


@pytest.mark.parametrize("path", corpus_models("ort/*.onnx"))
def test_real_models(numpy_only: Path, path: Path, tmp_path: Path) -> None:
    try:
        graph = intonnx.import_model(path)
    except intonnx.ImportFailure:
        pytest.skip("one of the models that are refused")
    if intonnx.coverage(graph).float:
        with pytest.raises(CompileFailure, match="stayed float"):
            write_program(graph, tmp_path / "m.pyz")
        return
    rng = np.random.default_rng(0)
    kind = {name: graph.types[name] for name in graph.inputs}
    shapes = {
        name: [d if isinstance(d, int) else 2 for d in t.shape or ()] for name, t in kind.items()
    }
    inputs = {
        name: rng.uniform(0, 1, shapes[name]).astype(t.dtype.numpy) for name, t in kind.items()
    }
    write_program(graph, tmp_path / "m.pyz")
    np.savez(tmp_path / "in.npz", allow_pickle=False, **inputs)
    out = tmp_path / "out.npz"
    done = run(numpy_only, tmp_path / "m.pyz", "-i", tmp_path / "in.npz", "-o", out)
    assert done.returncode == 0, done.stderr
    with np.load(out) as found:
        for name, array in intonnx.compile(graph).run(inputs).items():
            np.testing.assert_array_equal(found[name], array)


@pytest.fixture
def digits() -> intonnx.Graph:
    """The network of the demo."""
    return intonnx.import_model(files("intonnx.demo_data").joinpath("digits_qdq.onnx").read_bytes())


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """An image for it, in a file."""
    path = tmp_path / "image.npy"
    np.save(path, np.random.default_rng(3).random((2, 1, 8, 8), np.float32))
    return path


@pytest.mark.parametrize("numerics", ["qlinear", "qdq", "fixed"])
def test_a_program_is_a_command(
    numpy_only: Path, digits: intonnx.Graph, image: Path, tmp_path: Path, numerics: str
) -> None:
    program, out, trace = (tmp_path / name for name in ("digits.pyz", "out.npz", "trace.npz"))
    write_program(digits, program, numerics)
    assert stat.S_IMODE(program.stat().st_mode) == 0o755
    done = run(numpy_only, program, "--input", f"x={image}", "-o", out, "--trace", trace)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    values = intonnx.compile(digits, numerics).trace({"x": np.load(image)})
    with np.load(out) as outputs, np.load(trace) as inner:
        np.testing.assert_array_equal(outputs["y"], values["y"])
        for name in set(inner.files) - {"__types__"}:
            np.testing.assert_array_equal(inner[name], values[name])
    signature = run(numpy_only, program, "--signature")
    assert signature.stdout.splitlines() == ["input x f32[N,1,8,8]", "output y f32[N,10]"]
    assert "numerics " + numerics in " ".join(run(numpy_only, program, "--help").stdout.split())


def test_bad_use_is_one_line(
    numpy_only: Path, digits: intonnx.Graph, image: Path, tmp_path: Path
) -> None:
    program, out = tmp_path / "digits.pyz", tmp_path / "out.npz"
    write_program(digits, program)
    for arguments, cause in (
        (("-i", "x=absent.npy", "-o", out), "absent.npy: cannot be read"),
        (("-i", f"z={image}", "-o", out), "no input 'z'"),
        (("-i", f"x={image}"), "no output"),
    ):
        done = run(numpy_only, program, *arguments)
        assert done.returncode == 2
        assert done.stderr.startswith(f"digits: error: {cause}")
        assert done.stderr.count("\n") == 1
        assert not out.exists()


def test_a_program_holds_source_and_arrays(digits: intonnx.Graph, tmp_path: Path) -> None:
    write_program(digits, tmp_path / "digits.pyz")
    with zipfile.ZipFile(tmp_path / "digits.pyz") as archive:
        names = archive.namelist()
        assert {Path(name).suffix for name in names} == {".py", ".npy", ".txt", ".json"}
        assert archive.read("digits/graph.txt").decode() == str(digits)
        assert "digits/runtime/lowering/integer/conv.py" in names
        assert "digits/runtime/lowering/integer/resize.py" not in names
        for name in names:
            if name.endswith(".py"):
                text = archive.read(name).decode()
                assert "\nfrom intonnx" not in text
                assert "\nfrom pydantic" not in text


def test_the_same_graph_gives_the_same_bytes(digits: intonnx.Graph, tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        write_program(digits, tmp_path / folder / "digits.pyz")
    one, other = ((tmp_path / folder / "digits.pyz").read_bytes() for folder in ("a", "b"))
    assert one == other


def test_nothing_is_left_when_it_cannot_be_written(digits: intonnx.Graph, tmp_path: Path) -> None:
    with pytest.raises(TextFailure, match="cannot be written"):
        write_program(digits, tmp_path / "absent" / "digits.pyz")
    with pytest.raises(CompileFailure, match="no numerics"):
        write_program(digits, tmp_path / "digits.pyz", "float")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("file", "module"),
    [
        ("model.pyz", "model"),
        ("my-net.v2.pyz", "my_net_v2"),
        ("8bit.pyz", "model_8bit"),
        ("numpy.pyz", "model_numpy"),
        ("json.pyz", "model_json"),
        ("é.pyz", "model__"),
        ("class.pyz", "model_class"),
    ],
)
def test_module_names(file: str, module: str) -> None:
    assert module_name(Path(file)) == module
