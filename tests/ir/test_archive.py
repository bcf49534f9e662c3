"""One file that holds a graph: what comes back, and what is refused."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import stat
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

import intonnx.ir.archive as archive
from intonnx.ir.archive import load, replacing, save
from intonnx.ir.errors import ModelFailure, TextFailure
from intonnx.ir.graph import Graph, Node
from intonnx.ir.ops.clip import Clip
from intonnx.ir.types import Array, DType, QuantParams, plain, quantized
from support.graphs import ODD_NAMES, graphs

Members = dict[str, bytes]


def example() -> Graph:
    weight = QuantParams(storage=DType.I8, scale=np.arange(1, 17), zero_point=[0] * 16, axis=0)
    arrays: dict[str, Array] = {
        "w": np.arange(32, dtype=np.int8).reshape(16, 2),
        "half": np.linspace(0, 1, 20).astype(DType.BF16.numpy),
        "../../etc/passwd\n": np.zeros(9, np.float32),
    }
    kinds = {
        "w": quantized(weight, (16, 2)),
        "half": plain(DType.BF16, (20,)),
        "../../etc/passwd\n": plain(DType.F32, (9,)),
    }
    return Graph("g", (), ("w",), (), kinds, arrays, metadata={"opset": 21})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "graph.intonnx"
    save(example(), found)
    return found


def members(path: Path) -> Members:
    with zipfile.ZipFile(path) as file:
        return {name: file.read(name) for name in file.namelist()}


def write(path: Path, parts: Members, method: int = zipfile.ZIP_STORED) -> None:
    with zipfile.ZipFile(path, "w", method) as file:
        for name, data in parts.items():
            file.writestr(name, data)


def npz(arrays: dict[str, Array], *, compressed: bool = False) -> bytes:
    stream = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(stream, **arrays)  # type: ignore[arg-type]
    return stream.getvalue()


def stored(path: Path) -> dict[str, Array]:
    with np.load(io.BytesIO(members(path)["arrays.npz"])) as found:
        return dict(found)


def test_a_graph_comes_back_equal(path: Path) -> None:
    assert load(path) == example()
    assert load(str(path)) == example()


def test_graph_save_takes_paths_and_strings(tmp_path: Path) -> None:
    example().save(tmp_path / "a")
    example().save(str(tmp_path / "b"))
    assert load(tmp_path / "a") == load(tmp_path / "b")


@settings(max_examples=50)
@given(graph=graphs())
def test_every_graph_comes_back_equal(
    tmp_path_factory: pytest.TempPathFactory, graph: Graph
) -> None:
    path = tmp_path_factory.mktemp("archive") / "graph.intonnx"
    save(graph, path)
    assert load(path) == graph


@pytest.mark.parametrize("name", ODD_NAMES)
def test_constants_of_any_name(tmp_path: Path, name: str) -> None:
    array = np.arange(100, dtype=np.uint16)
    graph = Graph("g", (), (name,), (), {name: plain(DType.U16, (100,))}, {name: array})
    save(graph, tmp_path / "g")
    assert load(tmp_path / "g") == graph


@pytest.mark.parametrize("dtype", [d for d in DType if d is not DType.CONTAINER])
def test_arrays_of_every_type(tmp_path: Path, dtype: DType) -> None:
    array = np.full((3, 4), "word", np.object_)
    if dtype is not DType.STRING:
        # A transposed view: what counts is the values, not where they lie.
        array = np.array([[0, 1, 0]] * 4).astype(dtype.numpy).T
    graph = Graph("g", (), ("c",), (), {"c": plain(dtype, (3, 4))}, {"c": array})
    save(graph, tmp_path / "g")
    found = load(tmp_path / "g")
    assert found == graph
    assert found.constants["c"].dtype == dtype.numpy


def test_the_same_graph_gives_the_same_bytes(path: Path, tmp_path: Path) -> None:
    save(example(), tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == path.read_bytes()


def test_the_file_is_a_zip_that_other_tools_read(path: Path) -> None:
    parts = members(path)
    assert list(parts) == ["manifest.json", "graph.txt", "arrays.npz"]
    assert parts["graph.txt"].decode() == str(example())
    manifest = json.loads(parts["manifest.json"])
    assert (manifest["format"], manifest["version"]) == ("intonnx graph", 1)
    assert manifest["arrays"] == [["w", "i8"], ["half", "bf16"], ["../../etc/passwd\n", "f32"]]
    with np.load(io.BytesIO(parts["arrays.npz"]), allow_pickle=False) as arrays:
        assert arrays["a1"].dtype == np.uint16


def test_saving_needs_a_valid_graph(tmp_path: Path) -> None:
    with pytest.raises(ModelFailure, match="made by no node"):
        save(Graph("g", (), ("y",), (), {}), tmp_path / "g")
    assert list(tmp_path.iterdir()) == []


def test_nothing_half_written_stays(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = path.read_bytes()

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(
        TextFailure, match=r"graph\.intonnx: cannot be written: No space left on device"
    ):
        save(example(), path)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_an_interrupted_write_changes_nothing(path: Path) -> None:
    before = path.read_bytes()

    def interrupted() -> None:
        with replacing(path) as file:
            file.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_writing_follows_a_link_and_keeps_it(path: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(path)
    with replacing(link) as file:
        file.write(b"new")
    assert link.is_symlink()
    assert path.read_bytes() == b"new"


def test_the_file_has_the_usual_permissions(path: Path) -> None:
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~mask


@pytest.mark.parametrize("target", ["/dev/null", "{}", "{}/missing/g"])
def test_what_cannot_be_written_is_named(tmp_path: Path, target: str) -> None:
    name = target.format(tmp_path)
    with pytest.raises(TextFailure, match=f"^{re.escape(name)}: cannot be written: "):
        save(example(), name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("target", ["{}/missing", "{}"])
def test_what_cannot_be_read_is_named(tmp_path: Path, target: str) -> None:
    name = target.format(tmp_path)
    with pytest.raises(TextFailure, match=f"^{re.escape(name)}: (No such file|Is a directory)"):
        load(name)


def test_files_that_are_no_archive(path: Path) -> None:
    for data in (b"", b"PK", b"hello", b"\x08\x0a" * 100, b"PK\x03\x04" + b"\0" * 100):
        path.write_bytes(data)
        with pytest.raises(TextFailure, match=re.escape(f"{path}: not a saved graph")):
            load(path)


def test_truncated_files(path: Path) -> None:
    whole = path.read_bytes()
    for length in range(0, len(whole), 37):
        path.write_bytes(whole[:length])
        with pytest.raises(TextFailure, match=re.escape(f"{path}: ")):
            load(path)


def test_damaged_bytes_are_refused_or_do_not_matter(path: Path) -> None:
    whole = path.read_bytes()
    for place in range(0, len(whole), 11):
        data = bytearray(whole)
        data[place] ^= 0x55
        path.write_bytes(data)
        with contextlib.suppress(TextFailure):
            assert load(path) == example()


def _manifest(change: Callable[[dict[str, object]], object]) -> Callable[[Members], None]:
    def apply(parts: Members) -> None:
        manifest = json.loads(parts["manifest.json"])
        change(manifest)
        parts["manifest.json"] = json.dumps(manifest).encode()

    return apply


def _set(name: str, data: bytes) -> Callable[[Members], None]:
    return lambda parts: parts.update({name: data})


def _text(old: bytes, new: bytes) -> Callable[[Members], None]:
    def apply(parts: Members) -> None:
        assert old in parts["graph.txt"]
        parts["graph.txt"] = parts["graph.txt"].replace(old, new)

    return apply


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda parts: parts.pop("arrays.npz"), "not a saved graph: it holds graph.txt, manifest"),
        (_set("../evil", b""), "not a saved graph: it holds ../evil, arrays.npz"),
        (_set("manifest.json", b"{"), "manifest.json is not JSON"),
        (_set("manifest.json", b"[" * 99999), "manifest.json is not JSON"),
        (_set("manifest.json", b"[]"), "not a saved graph: manifest.json says another format"),
        (_manifest(lambda m: m.update(format="x")), "manifest.json says another format"),
        (_manifest(lambda m: m.update(version=2)), "the file has format version 2, this program"),
        (_manifest(lambda m: m.pop("arrays")), "manifest.json has no list of arrays"),
        (
            _manifest(lambda m: m.update(arrays=[["w", "i9"]])),
            "manifest.json has no list of arrays",
        ),
        (
            _manifest(lambda m: m.update(arrays=[["w", "i8"]] * 3)),
            "manifest.json names an array twice",
        ),
        (_manifest(lambda m: m.update(arrays=[])), "arrays.npz does not hold the 0 arrays of"),
        (
            _manifest(lambda m: m.update(arrays=[["v", "i8"], ["half", "bf16"], ["x", "f32"]])),
            "the array of the constant 'w' is not among the weights",
        ),
        (
            _manifest(lambda m: m["arrays"][0].__setitem__(1, "u8")),  # type: ignore[index]
            "the array of 'w' is damaged: its bytes are int8, not those of u8",
        ),
        (
            _manifest(lambda m: m["arrays"][1].__setitem__(1, "u16")),  # type: ignore[index]
            "the constant 'half': the array is uint16, the type bf16",
        ),
        (
            _manifest(lambda m: m["arrays"][0].__setitem__(1, "str")),  # type: ignore[index]
            "the array of 'w' is damaged",
        ),
        (_text(b"const @w : q<i8, @s1 axis=0>[16,2]\n", b""), "the value 'w' is not made before"),
        (_text(b"  const @half : bf16[20]\n", b""), "the arrays of arrays.npz are not those that"),
        (_text(b"[16,2]", b"[16,1]"), "the constant 'w': the array has shape (16, 2), the type"),
        (_text(b"graph @g", b"grape @g"), "line 1, column 1: expected 'graph', found grape"),
        (_set("graph.txt", b"\xff\xfe"), "graph.txt is not UTF-8"),
        (_set("arrays.npz", b"no zip"), "not a saved graph, or a damaged one"),
        (_set("arrays.npz", npz({})), "arrays.npz does not hold the 3 arrays"),
    ],
)
def test_what_does_not_fit_together_is_refused(
    path: Path, change: Callable[[Members], object], message: str
) -> None:
    parts = members(path)
    change(parts)
    write(path, parts)
    with pytest.raises(TextFailure, match=re.escape(message)) as caught:
        load(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


def test_a_graph_that_does_not_verify_is_refused(tmp_path: Path) -> None:
    node = Node(Clip(low=0, high=9), ("x",), ("y",))
    kind = plain(DType.I8, (2,))
    path = tmp_path / "g"
    save(Graph("g", ("x",), ("y",), (node,), {"x": kind, "y": kind}), path)
    parts = members(path)
    parts["graph.txt"] = parts["graph.txt"].replace(b"high=9", b"high=-9")
    write(path, parts)
    with pytest.raises(TextFailure, match=r"node 'y' \(qnn.clip\): qnn.clip C2: bounds 0, -9"):
        load(path)


def test_pickles_are_not_read(path: Path) -> None:
    arrays = stored(path)
    arrays["a0"] = np.array([{}] * 32, np.object_)
    write(path, {**members(path), "arrays.npz": npz(arrays)})
    with pytest.raises(TextFailure, match="the array of 'w' is damaged: its bytes are object"):
        load(path)


def test_arrays_in_fortran_order_are_not_read(path: Path) -> None:
    arrays = stored(path)
    arrays["a0"] = np.asfortranarray(arrays["a0"])
    write(path, {**members(path), "arrays.npz": npz(arrays)})
    with pytest.raises(TextFailure, match="the array of 'w' is damaged"):
        load(path)


def test_an_array_that_claims_more_than_it_has(path: Path) -> None:
    data = members(path)["arrays.npz"]
    inner = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(inner, "w") as new:
        for name in old.namelist():
            part = old.read(name)
            if name == "a0.npy":
                part = part.replace(b"(16, 2)", b"(999,9)")
            new.writestr(name, part)
    write(path, {**members(path), "arrays.npz": inner.getvalue()})
    with pytest.raises(TextFailure, match="the array of 'w' is damaged: cannot reshape"):
        load(path)


def test_compressed_arrays_are_refused(path: Path) -> None:
    parts = members(path)
    write(path, parts, zipfile.ZIP_DEFLATED)
    with pytest.raises(TextFailure, match=r"arrays.npz is compressed"):
        load(path)
    bomb = {name: np.zeros(10_000, np.float32) for name in ("a0", "a1", "a2")}
    write(path, {**parts, "arrays.npz": npz(bomb, compressed=True)})
    with pytest.raises(TextFailure, match=r"an array in arrays.npz is compressed"):
        load(path)


def test_a_text_that_grows_too_large_is_not_unpacked(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = members(path)
    monkeypatch.setattr(archive, "MAX_TEXT", len(parts["graph.txt"]) - 1)
    with pytest.raises(TextFailure, match=r"graph.txt is larger than \d+ bytes"):
        load(path)
    with pytest.raises(TextFailure, match="the graph is too large to be saved"):
        save(example(), path)


def test_too_many_arrays_are_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MAX_ARRAYS", 2)
    with pytest.raises(TextFailure, match="or more than 2"):
        load(path)
    with pytest.raises(TextFailure, match="the graph is too large to be saved"):
        save(example(), path)


def test_members_that_share_their_bytes_are_refused(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = zipfile.ZipFile.infolist

    def doubled(self: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
        infos = real(self)
        for info in infos:
            if info.filename == "a0.npy":
                info.file_size = 1 << 40
        return infos

    monkeypatch.setattr(zipfile.ZipFile, "infolist", doubled)
    with pytest.raises(TextFailure, match=r"the arrays in arrays.npz share their bytes"):
        load(path)
