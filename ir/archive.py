"""A graph in one file: a zip of its text and its arrays, read without pickle.

Members, all of them and no others:

    manifest.json   {"format": "intonnx graph", "version": 1, "arrays": [[name, dtype], ...]}
    graph.txt       the text form, UTF-8
    arrays.npz      the arrays of `weights_of(graph)`: member a0.npy belongs to the first name of
                    the manifest, and so on; a type that numpy lacks is stored as unsigned integers

The same graph gives the same bytes. Arrays are not compressed, in neither of the two zips, so a
file cannot ask for more memory than its own size, its text apart, which has a limit.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import secrets
import stat
import struct
import zipfile
import zlib
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
from numpy.lib import format as npy

from intonnx.ir.errors import IntonnxError, TextFailure
from intonnx.ir.graph import Graph
from intonnx.ir.text import parse, print_graph, weights_of
from intonnx.ir.types import Array, DType
from intonnx.ir.verify import verify

FORMAT = "intonnx graph"
VERSION = 1
MAX_TEXT = 1 << 28
"""The largest text or manifest that is read or written, in bytes."""
MAX_ARRAYS = 1 << 20
"""The largest number of arrays that is read or written."""
MAX_HEADER = 1 << 12
"""The largest header of one array in bytes: it names a type and a shape."""

_MANIFEST, _TEXT, _ARRAYS = "manifest.json", "graph.txt", "arrays.npz"
_DATE = (1980, 1, 1, 0, 0, 0)
_UNSIGNED: dict[int, np.dtype[Any]] = {1: np.dtype("<u1"), 2: np.dtype("<u2")}
_BROKEN = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    KeyError,
    OverflowError,
    # Encryption and methods that zipfile does not know.
    NotImplementedError,
    RuntimeError,
    ValueError,
)


def save(graph: Graph, path: str | os.PathLike[str]) -> None:
    """Write a graph to one file, which appears when it is complete.

    Raises ModelFailure or TypeFailure when the graph does not pass `verify`, and TextFailure when
    it is too large or the file cannot be written; what was there before then stays.
    """
    verify(graph)
    weights = weights_of(graph)
    names = [[key, graph.types[key].dtype.value] for key in weights]
    manifest = json.dumps({"format": FORMAT, "version": VERSION, "arrays": names}, indent=1)
    texts = {_MANIFEST: manifest.encode(), _TEXT: print_graph(graph).encode()}
    if len(weights) > MAX_ARRAYS or max(map(len, texts.values())) > MAX_TEXT:
        raise TextFailure("the graph is too large to be saved", file=os.fspath(path))
    with replacing(path) as file, zipfile.ZipFile(file, "w") as archive:
        for member, data in texts.items():
            archive.writestr(_info(member, zipfile.ZIP_DEFLATED), data)
        with archive.open(_info(_ARRAYS, zipfile.ZIP_STORED), "w", force_zip64=True) as stream:
            stored = {f"a{index}": _stored(array) for index, array in enumerate(weights.values())}
            np.savez(stream, allow_pickle=False, **stored)


def load(path: str | os.PathLike[str]) -> Graph:
    """Read a graph that `save` wrote. Nothing in the file is executed or unpacked to disk.

    Raises TextFailure, naming the file and the cause, when there is no such file, it is truncated
    or damaged, of another format or version, its arrays are not of the types that its text says,
    or the graph does not pass `verify`.
    """
    name = os.fspath(path)
    try:
        with open(name, "rb") as file, zipfile.ZipFile(file) as archive:
            return _read(archive)
    except IntonnxError as error:
        error.located(file=name)
        raise
    except OSError as error:
        raise TextFailure(error.strerror or str(error), file=name) from error
    except MemoryError:
        raise TextFailure("there is not enough memory to read it", file=name) from None
    except _BROKEN as error:
        raise TextFailure(f"not a saved graph, or a damaged one: {error}", file=name) from error


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Generator[IO[bytes], None, None]:
    """A file that takes the place of `path` when it is complete; after an error nothing changes.

    Raises TextFailure when the file cannot be written or is no regular file.
    """
    target = Path(os.path.realpath(path))
    beside = target.with_name(f".{target.name[:100]}.{secrets.token_hex(4)}.part")
    try:
        # A device or a pipe must not be replaced by a file.
        if target.exists() and not stat.S_ISREG(target.stat().st_mode):
            raise TextFailure("cannot be written: it is no regular file", file=os.fspath(path))
        try:
            with open(beside, "xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(beside, target)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as error:
        cause = error.strerror or str(error)
        raise TextFailure(f"cannot be written: {cause}", file=os.fspath(path)) from error


def _info(member: str, method: int) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(member, _DATE)
    info.compress_type = method
    info.create_system = 3
    info.external_attr = 0o644 << 16
    return info


def _stored(array: Array) -> Array:
    array = np.asarray(array, order="C")
    return array if array.dtype.isbuiltin == 1 else array.view(_UNSIGNED[array.dtype.itemsize])


def _read(archive: zipfile.ZipFile) -> Graph:
    members = sorted(archive.namelist())
    if members != sorted([_MANIFEST, _TEXT, _ARRAYS]):
        raise TextFailure(f"not a saved graph: it holds {', '.join(members)[:80] or 'nothing'}")
    names = _manifest(_member(archive, _MANIFEST))
    arrays = _arrays(archive, names)
    try:
        text = _member(archive, _TEXT).decode()
    except UnicodeDecodeError as error:
        raise TextFailure(f"{_TEXT} is not UTF-8: {error}") from None
    graph = parse(text, arrays)
    if weights_of(graph).keys() != arrays.keys():
        raise TextFailure(f"the arrays of {_ARRAYS} are not those that {_TEXT} refers to")
    return graph


def _member(archive: zipfile.ZipFile, name: str) -> bytes:
    if archive.getinfo(name).file_size > MAX_TEXT:
        raise TextFailure(f"{name} is larger than {MAX_TEXT} bytes")
    return archive.read(name)


def _manifest(data: bytes) -> dict[str, DType]:
    try:
        manifest = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise TextFailure(f"{_MANIFEST} is not JSON: {error}") from None
    manifest = cast("dict[str, Any]", manifest if isinstance(manifest, dict) else {})
    if manifest.get("format") != FORMAT:
        raise TextFailure(f"not a saved graph: {_MANIFEST} says another format")
    if (version := manifest.get("version")) != VERSION:
        raise TextFailure(f"the file has format version {version}, this program reads {VERSION}")
    try:
        names = {str(name): DType(dtype) for name, dtype in manifest["arrays"]}
        whole = len(names) == len(manifest["arrays"]) <= MAX_ARRAYS
    except (KeyError, TypeError, ValueError) as error:
        raise TextFailure(f"{_MANIFEST} has no list of arrays: {error}") from None
    if not whole:
        raise TextFailure(f"{_MANIFEST} names an array twice, or more than {MAX_ARRAYS}")
    return names


def _arrays(archive: zipfile.ZipFile, names: Mapping[str, DType]) -> dict[str, Array]:
    if archive.getinfo(_ARRAYS).compress_type != zipfile.ZIP_STORED:
        raise TextFailure(f"{_ARRAYS} is compressed")
    data = archive.read(_ARRAYS)
    with zipfile.ZipFile(io.BytesIO(data)) as inner:
        infos = inner.infolist()
        if [info.filename for info in infos] != [f"a{index}.npy" for index in range(len(names))]:
            raise TextFailure(f"{_ARRAYS} does not hold the {len(names)} arrays of {_MANIFEST}")
        if any(info.compress_type != zipfile.ZIP_STORED for info in infos):
            raise TextFailure(f"an array in {_ARRAYS} is compressed")
        if sum(info.file_size for info in infos) > len(data):
            raise TextFailure(f"the arrays in {_ARRAYS} share their bytes")
        return {
            name: _array(name, dtype, inner.read(info))
            for (name, dtype), info in zip(names.items(), infos, strict=True)
        }


def _array(name: str, dtype: DType, data: bytes) -> Array:
    """One array from the bytes of its .npy file; only the header is interpreted."""
    try:
        stream = io.BytesIO(data)
        if npy.read_magic(stream) != (1, 0):
            raise ValueError("it is not of version 1.0")
        shape, fortran, stored = npy.read_array_header_1_0(stream, max_header_size=MAX_HEADER)
        if fortran or dtype.numpy.hasobject or stored != _stored_type(dtype):
            raise ValueError(f"its bytes are {stored}, not those of {dtype}")
        # The type of the text, not that of the file: it is native, and may be one of ml_dtypes.
        array = np.frombuffer(data, stored, offset=stream.tell()).astype(stored.newbyteorder("="))
        return array.view(dtype.numpy).reshape(shape)
    except ValueError as error:
        raise TextFailure(f"the array of '{name}' is damaged: {error}") from None


def _stored_type(dtype: DType) -> np.dtype[Any]:
    kind = dtype.numpy
    return kind.newbyteorder("<") if kind.isbuiltin == 1 else _UNSIGNED[kind.itemsize]
