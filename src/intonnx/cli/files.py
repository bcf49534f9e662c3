"""What the commands read and write: models, saved graphs, arrays."""

from __future__ import annotations

import contextlib
import json
import os
import struct
import warnings
import zipfile
import zlib
from collections.abc import Generator, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy

from intonnx.ir.archive import load, replacing
from intonnx.ir.errors import IntonnxError, RunFailure
from intonnx.ir.graph import Graph
from intonnx.ir.types import Array, DType, TensorType

TYPES = "__types__"
"""Where a trace has the types of its values: text [values, 2], a row has a name and the JSON
of a `TensorType`."""
_SAVED = b"PK\x03\x04"
"""How a zip file begins; no ONNX model does."""
_BROKEN = (
    ValueError,
    EOFError,
    KeyError,
    OverflowError,
    RuntimeError,
    NotImplementedError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
)


@contextlib.contextmanager
def about(path: Path) -> Generator[None, None, None]:
    """Whatever fails inside names this file, unless it names one already."""
    try:
        yield
    except IntonnxError as error:
        raise error.located(file=os.fspath(path)) from None


def is_saved_graph(path: Path) -> bool:
    """Whether the file is one that `intonnx compile --target integer` wrote."""
    try:
        with path.open("rb") as file:
            return file.read(len(_SAVED)) == _SAVED
    except OSError:
        return False


def open_graph(path: Path) -> Graph:
    """The graph of an ONNX model, or of a file that `compile --target integer` wrote.

    Raises ImportFailure or TextFailure, naming the file.
    """
    if is_saved_graph(path):
        return load(path)
    from intonnx.importer import import_model

    with about(path):
        return import_model(path)


def check_output(path: Path, source: Path | None = None) -> None:
    """Refuse, before any work is done, an output that could not be written in the end.

    Raises RunFailure when there is no folder for it, or when it is the file `source`.
    """
    if not path.parent.is_dir():
        raise RunFailure(f"there is no folder '{path.parent}'", file=os.fspath(path))
    if path.is_dir():
        raise RunFailure("cannot be written: it is a folder", file=os.fspath(path))
    if source is not None and path.exists() and source.exists() and path.samefile(source):
        raise RunFailure("the output would replace the model", file=os.fspath(path))


def read_inputs(graph: Graph, texts: Iterable[str]) -> dict[str, Array]:
    """The arrays that `--input` names: `NAME=FILE.npy`, `NAME=FILE.npz` or `FILE.npz`.

    An .npz alone gives the arrays in it under their names; for a NAME it must hold that name or
    one array only. Raises RunFailure.
    """
    found: dict[str, Array] = {}
    for text in texts:
        # A name may hold "=": one that the graph has comes first.
        name = next((n for n in graph.inputs if text.startswith(f"{n}=")), None)
        if name is not None:
            found[name] = _one_array(name, Path(text[len(name) + 1 :]))
        elif text.endswith(".npz") and ("=" not in text or Path(text).exists()):
            found.update(read_arrays(Path(text)))
        elif "=" in text:
            name, _, file = text.partition("=")
            found[name] = _one_array(name, Path(file))
        else:
            raise RunFailure(f"the input '{text}' is neither NAME=FILE.npy nor FILE.npz")
    return found


def _one_array(name: str, path: Path) -> Array:
    arrays = read_arrays(path)
    if name in arrays:
        return arrays[name]
    if len(arrays) == 1:
        return next(iter(arrays.values()))
    held = ", ".join(map(repr, arrays)) or "nothing"
    raise RunFailure(f"it has no array '{name}', it holds {held}", file=os.fspath(path))


def read_arrays(path: Path) -> dict[str, Array]:
    """The arrays of an .npz by name, or that of an .npy under the name "". Raises RunFailure."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with path.open("rb") as file:
                loaded: Any = np.load(file, allow_pickle=False)
                if isinstance(loaded, np.ndarray):
                    return {"": _native(loaded)}
                with loaded:
                    return {str(key): _native(loaded[key]) for key in loaded.files}
    except OSError as error:
        cause = error.strerror or str(error)
        raise RunFailure(f"cannot be read: {cause}", file=os.fspath(path)) from None
    except MemoryError:
        raise RunFailure("its arrays do not fit into memory", file=os.fspath(path)) from None
    except _BROKEN:
        cause = "not an .npy or .npz file of plain arrays, or a damaged one"
        raise RunFailure(cause, file=os.fspath(path)) from None


def _native(array: Array) -> Array:
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def write_arrays(path: Path, arrays: Mapping[str, Array], graph: Graph) -> None:
    """Write arrays to an .npz, which appears when it is complete.

    Types that numpy lacks are written as float32, which holds every value of theirs. Raises
    TextFailure when the file cannot be written.
    """
    _write({n: _plain(array, graph.types[n].dtype) for n, array in arrays.items()}, path)


def write_trace(path: Path, values: Mapping[str, Array], graph: Graph) -> int:
    """Write what `trace` gave, but constants, as `write_arrays` does; returns how many these are.

    Under `TYPES` stands a table of their names and types.
    """
    inner = {name: array for name, array in values.items() if name not in graph.constants}
    table = np.array([(name, type_as_json(graph.types[name])) for name in inner], np.str_)
    plain = {n: _plain(array, graph.types[n].dtype) for n, array in inner.items()}
    _write({**plain, TYPES: table}, path)
    return len(inner)


def type_as_json(kind: TensorType) -> str:
    """A type as `TensorType.model_validate_json` reads it, without what is absent."""
    fields: dict[str, object] = {"dtype": kind.dtype, "shape": kind.shape}
    if (quant := kind.quant) is not None:
        given = {key: getattr(quant, key) for key in ("axis", "block", "low", "high")}
        fields["quant"] = {
            "storage": quant.storage,
            "scale": quant.scale.tolist(),
            "zero_point": quant.zero_point.tolist(),
            "expressed": quant.expressed,
            **{key: value for key, value in given.items() if value is not None},
        }
    if kind.container is not None:
        fields["container"] = kind.container
    return json.dumps(fields)


def _write(arrays: Mapping[str, Array], path: Path) -> None:
    with replacing(path) as file, zipfile.ZipFile(file, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                npy.write_array(member, array, allow_pickle=False)


def _plain(array: Array, dtype: DType) -> Array:
    if dtype is DType.STRING:
        return array.astype(np.str_)
    return array if array.dtype.isbuiltin == 1 else array.astype(np.float32)
