"""A file for each value in the form that `$readmemh` of Verilog reads.

Source: IEEE 1800-2017, 21.4 "Loading memory array data from a file": white space separates the
numbers, `//` begins a comment.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Generator, Iterable, Mapping
from pathlib import Path

import numpy as np

from intonnx.ir.errors import RunFailure
from intonnx.ir.graph import Graph, Role
from intonnx.ir.names import identifiers
from intonnx.ir.text.types import SHORT, TypePrinter, dims
from intonnx.ir.types import Array, DType, Record, TensorType

INDEX = "index.json"


class HexFile(Record):
    """One value.

    Attributes:
        name: its name in the model.
        file: the file that holds it.
        role: an input, a constant, an output, or a value between them.
        type: its type in the model, with scales and zero points.
        shape: the sizes in this run.
        bits: the width of a number; 64 for sums that leave int32.
    """

    name: str
    file: str
    role: Role
    type: TensorType
    shape: tuple[int, ...]
    bits: int


class HexIndex(Record):
    """All files of a folder, and what could not be written as bits, by name."""

    files: tuple[HexFile, ...]
    left_out: tuple[str, ...]


def write_hex(
    graph: Graph, values: Mapping[str, Array], folder: str | os.PathLike[str]
) -> HexIndex:
    """Write every value to a file of its own, with an index.

    A file holds one number a line in C order (the last axis runs fastest), in two's complement or
    as the bits of a float, with as many digits as the type is wide, after comments that give the
    name, the type and the shape. `index.json` is a `HexIndex`.

    Args:
        graph: the graph that ran.
        values: what `Executable.trace` returned.
        folder: a folder that does not exist yet, or an empty one; it appears when it is complete.

    Raises:
        RunFailure: the folder holds something, or cannot be written.
    """
    names = identifiers(values)
    left_out = tuple(n for n, array in values.items() if _bits(array, graph.types[n]) is None)
    files: list[HexFile] = []
    with _new_folder(Path(folder)) as place:
        for name, array in values.items():
            bits = _bits(array, graph.types[name])
            if bits is None:
                continue
            entry = HexFile(
                name=name,
                file=f"{names[name]}.hex",
                role=graph.role(name),
                type=graph.types[name],
                shape=array.shape,
                bits=bits,
            )
            (place / entry.file).write_text(_text(entry, array), encoding="utf-8", newline="\n")
            files.append(entry)
        index = HexIndex(files=tuple(files), left_out=left_out)
        text = index.model_dump_json(indent=1)
        (place / INDEX).write_text(f"{text}\n", encoding="utf-8", newline="\n")
    return index


def _bits(array: Array, kind: TensorType) -> int | None:
    """How wide a number is; None for text and for what is no tensor."""
    if array.dtype.kind in "OUSc":
        return None
    if kind.dtype is DType.BOOL:
        return 1
    narrow = kind.dtype.is_integer and kind.dtype.bits < 8
    return kind.dtype.bits if narrow else array.dtype.itemsize * 8


def _text(entry: HexFile, array: Array) -> str:
    head = [
        f"// {_one_line(entry.name)}",
        f"// {_spelled(entry.type)}",
        f"// shape {dims(entry.shape)}, {entry.bits} bits, C order",
    ]
    return "\n".join([*head, *digits(array, entry.bits)]) + "\n"


def _spelled(kind: TensorType) -> str:
    """The type as the text form has it; many scales are left to the index."""
    quant = kind.quant
    if quant is None or quant.scale.size <= SHORT:
        return TypePrinter(()).type(kind)
    return f"{kind.dtype.value}{dims(kind.shape)}, {quant.scale.size} scales: see {INDEX}"


def _one_line(name: str) -> str:
    return name if name.isprintable() else name.encode("unicode_escape").decode()


def digits(array: Array, bits: int) -> Iterable[str]:
    """The numbers of an array in C order, each in hexadecimal; two's complement of `bits` bits."""
    if array.size == 0:
        return ()
    size = array.dtype.itemsize
    flat = np.ascontiguousarray(array).reshape(-1).view(f"u{size}")
    words = flat.astype(f">u{size}").tobytes().hex("\n", size).split("\n")
    # A type under 8 bits is held a byte an element; its last digit is the number, or holds it.
    if bits >= 8:
        return words
    return (f"{int(word, 16) & ((1 << bits) - 1):x}" for word in words)


@contextlib.contextmanager
def _new_folder(target: Path) -> Generator[Path, None, None]:
    """A folder that takes the place of `target` when all of it is written."""
    beside = target.with_name(f".{target.name[:100]}.{secrets.token_hex(4)}.part")
    try:
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise RunFailure("exists already and is no empty folder", file=os.fspath(target))
        try:
            beside.mkdir()
            yield beside
            beside.replace(target)
        finally:
            shutil.rmtree(beside, ignore_errors=True)
    except OSError as error:
        cause = error.strerror or str(error)
        raise RunFailure(f"cannot be written: {cause}", file=os.fspath(target)) from error
