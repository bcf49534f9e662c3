"""Files for `$readmemh`: a small reader of their own finds the values of the run in them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import intonnx
from intonnx.golden import write_hex
from intonnx.golden.hexadecimal import digits
from intonnx.ir.errors import RunFailure
from intonnx.ir.names import identifiers
from intonnx.ir.types import Array
from support.models import Builder, Fed, Held, s8, u8


def readmemh(path: Path) -> list[str]:
    """The numbers of a file as Verilog reads it: comments and white space do not count."""
    lines = path.read_text().splitlines()
    return [word for line in lines for word in line.split("//")[0].split()]


def as_integers(words: list[str], bits: int, signed: bool) -> list[int]:
    numbers = [int(word, 16) for word in words]
    assert all(len(word) == -(-bits // 4) for word in words)
    return [n - (1 << bits) if signed and n >> (bits - 1) else n for n in numbers]


def conv_model() -> onnx.ModelProto:
    rng = np.random.default_rng(0)
    build = Builder(17)
    x = build.operand(Fed("a/x", (1, 3, 5, 5), u8(0.02, 114)), 0)
    w = build.operand(Held(rng.integers(-128, 128, (4, 3, 3, 3)), s8(0.01)), 1)
    real = build.node("Conv", [x, w], name="conv")
    build.quantize(real, s8(0.05, 3), "y")
    build.output("y", np.int8)
    return build.model()


@pytest.fixture
def trace() -> tuple[Any, dict[str, Array]]:
    graph = intonnx.import_model(conv_model())
    x = np.random.default_rng(1).normal(size=(1, 3, 5, 5)).astype(np.float32)
    return graph, intonnx.compile(graph).trace({"a/x": x})


def test_every_value_reads_back(trace: tuple[Any, dict[str, Array]], tmp_path: Path) -> None:
    graph, values = trace
    write_hex(graph, values, tmp_path / "hex")
    index = json.loads((tmp_path / "hex/index.json").read_text())
    assert {entry["name"] for entry in index["files"]} == set(values)
    for entry in index["files"]:
        array, words = values[entry["name"]], readmemh(tmp_path / "hex" / entry["file"])
        assert tuple(entry["shape"]) == array.shape
        if array.dtype.kind == "f":
            found = np.array([int(word, 16) for word in words], np.uint32).view(np.float32)
            np.testing.assert_array_equal(found, array.ravel())
        else:
            signed = entry["type"]["dtype"].startswith("i")
            assert as_integers(words, entry["bits"], signed) == array.ravel().tolist()


def test_index_has_roles_and_parameters(trace: Any, tmp_path: Path) -> None:
    graph, values = trace
    files = {file.name: file for file in write_hex(graph, values, tmp_path / "hex").files}
    assert files["a/x"].role == "input"
    assert files["y"].role == "output"
    assert {f.role for f in files.values()} == {"input", "output", "constant", "value"}
    quant = files["y"].type.params
    assert (quant.scalar_scale, quant.scalar_zero_point) == (np.float32(0.05), 3)


def test_narrow_types_take_one_digit() -> None:
    assert list(digits(np.array([-8, -1, 7], np.int8), 4)) == ["8", "f", "7"]
    assert list(digits(np.array([0, 3], np.uint8), 2)) == ["0", "3"]
    assert list(digits(np.array([True, False]), 1)) == ["1", "0"]


def test_values_that_are_no_numbers_are_named(tmp_path: Path) -> None:
    node = helper.make_node("Identity", ["s"], ["t"])
    values = [helper.make_tensor_value_info(n, TensorProto.STRING, [2]) for n in "st"]
    graph_proto = helper.make_graph([node], "g", values[:1], values[1:])
    model = helper.make_model(graph_proto, opset_imports=[helper.make_opsetid("", 17)])
    graph = intonnx.import_model(model)
    traced = intonnx.compile(graph).trace({"s": np.array(["a", "b"], object)})
    assert write_hex(graph, traced, tmp_path / "hex").left_out == ("s", "t")


def test_a_folder_that_holds_something_stays(trace: Any, tmp_path: Path) -> None:
    graph, values = trace
    folder = tmp_path / "hex"
    folder.mkdir()
    write_hex(graph, values, folder)
    before = sorted(folder.iterdir())
    with pytest.raises(RunFailure, match="no empty folder"):
        write_hex(graph, values, folder)
    assert sorted(folder.iterdir()) == before
    with pytest.raises(RunFailure, match="cannot be written"):
        write_hex(graph, values, tmp_path / "absent/hex")
    assert [p.name for p in tmp_path.iterdir()] == ["hex"]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["/conv/Conv_output_0"], ["conv_Conv_output_0"]),
        (["a.b", "a/b", "A_B"], ["a_b", "a_b_2", "A_B_3"]),
        (["0", "///", "../../x"], ["0", "value", "x"]),
    ],
)
def test_identifiers(names: list[str], expected: list[str]) -> None:
    assert list(identifiers(names).values()) == expected


def test_long_names_stay_apart() -> None:
    given = identifiers([f"{'n' * 300}{i}" for i in range(20)])
    assert len(set(given.values())) == 20
    assert max(map(len, given.values())) < 100
