"""Whatever is wrong: one line on stderr, exit code 2, no new file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest

from .conftest import Invoke, conv_model


def fails(invoke: Invoke, *arguments: str | Path) -> str:
    """The error line of a command that must fail."""
    result = invoke(*arguments)
    assert result.exit_code == 2, result.stdout
    assert result.stdout == ""
    assert result.stderr.startswith("intonnx: error: ")
    assert result.stderr.count("\n") == 1
    assert "defect" not in result.stderr
    return result.stderr.removeprefix("intonnx: error: ").rstrip("\n")


def cyclic() -> bytes:
    proto = conv_model()
    conv = next(node for node in proto.graph.node if node.op_type == "Conv")
    conv.input[0] = "codes_dq"
    return proto.SerializeToString()


WHOLE = conv_model().SerializeToString()
BAD_MODELS = {
    "empty": (b"", "the file is empty"),
    "truncated": (WHOLE[: len(WHOLE) // 2], "truncated"),
    "text": (b"# not a model\n", "not an ONNX model"),
    "cyclic": (cyclic(), "node 'codes_dq_node' (DequantizeLinear): the graph has a cycle"),
    "zip": (b"PK\x03\x04 and nothing", "not a saved graph"),
}


@pytest.mark.parametrize("command", ["inspect", "compile", "run", "verify"])
@pytest.mark.parametrize("kind", [*BAD_MODELS, "missing", "folder"])
def test_bad_models(kind: str, command: str, invoke: Invoke, tmp_path: Path) -> None:
    path, out = tmp_path / "bad.onnx", tmp_path / "out"
    content, message = BAD_MODELS.get(kind, (b"", "cannot read the file"))
    if kind == "folder":
        path.mkdir()
    elif kind != "missing":
        path.write_bytes(content)
    rest = ["-o", out] if command in ("compile", "run") else []
    line = fails(invoke, command, path, *rest)
    assert line.startswith(f"{path}: ")
    if kind != "cyclic":
        assert message in line
    else:
        assert "(Conv): the graph has a cycle" in line or message in line
    assert not out.exists()


@pytest.mark.parametrize(
    ("name", "array", "message"),
    [
        ("z", np.zeros((1, 3, 6, 6), np.float32), "no input 'z': the inputs are 'x'"),
        ("x", np.zeros((1, 3, 6, 7), np.float32), "has shape [1, 3, 6, 7], not [N, 3, 6, 6]"),
        ("x", np.zeros((3, 6, 6), np.float32), "has shape [3, 6, 6], not [N, 3, 6, 6]"),
        ("x", np.zeros((1, 3, 6, 6), np.float64), "the input 'x' is float64, not float32"),
        ("x", np.full((1, 3, 6, 6), "a"), "the input 'x' is <U1, not float32"),
    ],
)
@pytest.mark.parametrize("command", ["run", "verify"])
def test_inputs_that_do_not_fit(
    command: str, name: str, array: np.ndarray, message: str,
    invoke: Invoke, model: Path, tmp_path: Path,
) -> None:  # fmt: skip
    np.save(tmp_path / "in.npy", array)
    rest = ["-o", tmp_path / "out.npz"] if command == "run" else []
    line = fails(invoke, command, model, "-i", f"{name}={tmp_path / 'in.npy'}", *rest)
    assert line.startswith(f"{model}: ")
    assert message in line
    assert not (tmp_path / "out.npz").exists()


def test_a_missing_input(invoke: Invoke, model: Path, tmp_path: Path) -> None:
    line = fails(invoke, "run", model, "-o", tmp_path / "out.npz")
    assert line == f"{model}: the input 'x' is missing"


def _pickled(path: Path) -> None:
    np.save(path, np.array([{"a": 1}], dtype=object), allow_pickle=True)


def _cut(path: Path) -> None:
    np.save(path, np.zeros(1000))
    path.write_bytes(path.read_bytes()[:500])


ARRAY_FILES: dict[str, Callable[[Path], object]] = {
    "empty": lambda path: path.write_bytes(b""),
    "text": lambda path: path.write_text("1 2 3"),
    "pickle": _pickled,
    "truncated": _cut,
    "huge": lambda path: path.write_bytes(
        b"\x93NUMPY\x01\x00v\x00"
        + b"{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000000,)}".ljust(117)
        + b"\n"
    ),
    "zip": lambda path: path.write_bytes(b"PK\x03\x04 and nothing"),
    "folder": lambda path: path.mkdir(),
    "missing": lambda path: None,
}


@pytest.mark.parametrize("kind", ARRAY_FILES)
def test_bad_array_files(kind: str, invoke: Invoke, model: Path, tmp_path: Path) -> None:
    path = tmp_path / "in.npy"
    ARRAY_FILES[kind](path)
    line = fails(invoke, "run", model, "-i", f"x={path}", "-o", tmp_path / "out.npz")
    assert line.startswith(f"{path}: ")


def test_an_npz_without_the_name(invoke: Invoke, model: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "in.npz", a=np.zeros(1), b=np.zeros(1))
    line = fails(invoke, "run", model, "-i", f"x={tmp_path / 'in.npz'}", "-o", tmp_path / "o.npz")
    assert line == f"{tmp_path / 'in.npz'}: it has no array 'x', it holds 'a', 'b'"
    assert "neither" in fails(invoke, "run", model, "-i", "in.npy", "-o", tmp_path / "o.npz")


@pytest.mark.parametrize("command", ["compile", "integer", "run", "trace", "demo"])
def test_outputs_that_cannot_be_written(
    command: str, invoke: Invoke, model: Path, image: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").write_bytes(b"")
    out, before = tmp_path / "file" / "out", sorted(tmp_path.iterdir())
    run = ["run", model, "-i", f"x={image}", "-o"]
    arguments: dict[str, list[str | Path]] = {
        "compile": ["compile", model, "-o", out],
        "integer": ["compile", model, "--target", "integer", "-o", out],
        "run": [*run, out],
        "trace": [*run, tmp_path / "y.npz", "--trace", out],
        "demo": ["demo", "-o", out],
    }
    result = invoke(*arguments[command])
    assert result.exit_code == 2
    assert result.stderr.startswith(f"intonnx: error: {out}: ")
    assert result.stderr.count("\n") == 1
    assert sorted(tmp_path.iterdir()) == before


def test_a_folder_and_the_model_itself_are_no_outputs(
    invoke: Invoke, model: Path, tmp_path: Path
) -> None:
    content = model.read_bytes()
    assert "it is a folder" in fails(invoke, "compile", model, "-o", tmp_path)
    assert "would replace the model" in fails(invoke, "compile", model, "-o", model)
    assert model.read_bytes() == content


def test_a_failing_export_leaves_what_was_there(
    invoke: Invoke, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: onnx.ModelProto) -> bytes:
        raise OSError(28, "No space left on device")

    out = tmp_path / "out.onnx"
    out.write_bytes(b"before")
    before = sorted(tmp_path.iterdir())
    monkeypatch.setattr("os.fsync", full)
    assert fails(invoke, "compile", model, "-o", out) == (
        f"{out}: cannot be written: No space left on device"
    )
    assert out.read_bytes() == b"before"
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--bogus"], "No such option: --bogus"),
        (["inspect", "--bogus"], "No such option: --bogus"),
        (["bogus"], "No such command 'bogus'"),
        (["inspect"], "Missing argument 'MODEL'"),
        (["inspect", "m", "--json", "--text"], "exclude each other"),
        (["inspect", "m", "--mlir", "--text"], "exclude each other"),
        (["compile", "m", "-o", "o", "--target", "c"], "'c' is not one of 'onnx', 'integer'"),
        (["compile", "m", "-o", "o", "--numerics", "qdq"], "--numerics goes with"),
        (["compile", "m", "-o", "o.intonnx", "--form", "qdq"], "--explain go with --target onnx"),
        (["run", "m"], "Missing option '--output'"),
        (["verify", "m", "--max-quanta", "-1"], "--max-quanta"),
        (["verify", "m", "--max-quanta", "nan"], "--max-quanta"),
        (["verify", "m", "--samples", "0"], "--samples"),
        (["verify", "m", "--dim", "H"], "NAME=SIZE is wanted"),
        (["verify", "m", "--dim", "H=0"], "NAME=SIZE is wanted"),
    ],
)
def test_bad_use(arguments: list[str], message: str, invoke: Invoke) -> None:
    assert message in fails(invoke, *arguments)


def test_a_name_cannot_break_the_line(invoke: Invoke, tmp_path: Path) -> None:
    line = fails(invoke, "inspect", tmp_path / "a\nb\x1b[2J")
    assert "a\\nb\\x1b[2J" in line


def test_a_hint_when_the_size_of_a_symbolic_axis_is_wrong(invoke: Invoke, tmp_path: Path) -> None:
    proto = conv_model()
    conv = next(node for node in proto.graph.node if node.op_type == "Conv")
    del conv.attribute[:]  # no pads: an image of one pixel is too small
    proto.graph.input[0].type.tensor_type.shape.dim[2].dim_param = "H"
    (tmp_path / "m.onnx").write_bytes(proto.SerializeToString())
    assert invoke("verify", tmp_path / "m.onnx", "--dim", "H=9").exit_code == 0
    result = invoke("verify", tmp_path / "m.onnx")
    assert result.exit_code == 1
    assert "the random input 'x' has shape [1, 3, 1, 6], of [N,3,H,6]: set sizes" in result.stdout


def test_a_defect_is_one_line_too(
    invoke: Invoke, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(source: object) -> object:
        raise KeyError("x")

    monkeypatch.setattr("intonnx.importer.import_model", broken)
    result = invoke("inspect", model)
    assert result.exit_code == 2
    assert result.stderr.startswith("intonnx: error: a defect of intonnx, please report it: ")
    assert result.stderr.count("\n") == 1
