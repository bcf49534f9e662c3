"""Tensors whose data lies in files beside the model: checked first, mapped into memory, read late.

Source: docs/ExternalData.md and IR.md of the ONNX specification.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
from google.protobuf.message import Message

from intonnx.ir.errors import FileFailure, ModelFailure
from intonnx.ir.types import Array, DType
from intonnx.protos import array_of, dtype_of_element

_PACKED = {DType.U2: 2, DType.I2: 2, DType.U4: 4, DType.I4: 4, DType.F4E2M1: 4}
"""Bits of an element of the types that ONNX packs."""


def is_external(tensor: onnx.TensorProto) -> bool:
    """Whether a tensor's data lies outside the model."""
    return tensor.data_location == onnx.TensorProto.EXTERNAL


def tensors_of(message: Message) -> Iterator[onnx.TensorProto]:
    """Every tensor in a model, those in attributes and subgraphs included."""
    pending: list[Message] = [message]
    while pending:
        item = pending.pop()
        if isinstance(item, onnx.TensorProto):
            yield item
            continue
        for field, value in item.ListFields():
            if field.message_type is not None:
                pending.extend([value] if isinstance(value, Message) else value)


class ExternalData:
    """The files beside a model. Each is mapped once, however many tensors are in it.

    Nothing is read before somebody looks at a tensor's elements, so the files must stay as they
    are for as long as the arrays are in use.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._files: dict[Path, Array] = {}

    def check(self, proto: onnx.ModelProto) -> None:
        """Raise FileFailure for a tensor whose data is missing, too short or not in the folder."""
        for tensor in filter(is_external, tensors_of(proto)):
            self._place(tensor)

    def array(self, tensor: onnx.TensorProto) -> Array:
        """The content of any tensor; types under 8 bits come a byte an element.

        Raises FileFailure as `check` does, ModelFailure when the data does not fit the type and
        shape.
        """
        if not is_external(tensor):
            return array_of(tensor)
        path, offset, length = self._place(tensor)
        dtype = dtype_of_element(tensor.data_type)
        if dtype is DType.STRING:
            raise ModelFailure(f"the tensor '{tensor.name}' of strings has external data")
        shape = tuple(tensor.dims)
        bits = _PACKED.get(dtype, 8 * dtype.numpy.itemsize)
        size = -(-math.prod(shape) * bits // 8)
        if min(shape, default=0) < 0 or length not in (None, size):
            raise ModelFailure(
                f"the tensor '{tensor.name}' has {length} bytes of external data, its type and "
                f"shape {list(shape)} ask for {size}"
            )
        data = self._bytes(tensor.name, path, offset, size)
        if dtype in _PACKED:
            return array_of(onnx.TensorProto(name=tensor.name, data_type=tensor.data_type,
                                             dims=shape, raw_data=data.tobytes()))  # fmt: skip
        little = dtype.numpy.newbyteorder("<") if dtype.numpy.isbuiltin == 1 else dtype.numpy
        return data.view(little).astype(dtype.numpy, copy=False).reshape(shape)

    def embedded(self, proto: onnx.ModelProto) -> onnx.ModelProto:
        """The model with all external data inside but that of the graph's own initializers."""
        if not any(map(is_external, _inner_tensors(proto))):
            return proto
        copy = onnx.ModelProto()
        copy.CopyFrom(proto)
        for tensor in filter(is_external, _inner_tensors(copy)):
            tensor.raw_data = self._bytes(tensor.name, *self._place(tensor)).tobytes()
            tensor.ClearField("external_data")
            tensor.data_location = onnx.TensorProto.DEFAULT
        return copy

    def _place(self, tensor: onnx.TensorProto) -> tuple[Path, int, int | None]:
        """File, offset and length in bytes, None for all that follows."""
        name = tensor.name
        entries = {entry.key: entry.value for entry in tensor.external_data}
        location = entries.get("location", "")
        if not self._folder:
            raise FileFailure(
                f"the tensor '{name}' is in the file '{location}' beside the model: "
                "import the model by its path"
            )
        path = _resolved(name, location, Path(self._folder))
        try:
            offset = int(entries.get("offset", 0))
            length = int(entries["length"]) if "length" in entries else None
        except ValueError:
            raise FileFailure(f"the external data of '{name}' has a malformed offset") from None
        if offset < 0 or (length or 0) < 0 or offset + (length or 0) > path.stat().st_size:
            raise FileFailure(
                f"the external data of '{name}', '{location}', is shorter than the model says"
            )
        return path, offset, length

    def _bytes(self, name: str, path: Path, offset: int, length: int | None) -> Array:
        if path not in self._files:
            whole = path.stat().st_size
            # An empty file cannot be mapped.
            mapped = np.memmap(path, np.uint8, "r") if whole else np.empty(0, np.uint8)
            self._files[path] = np.asarray(mapped)
        data = self._files[path][offset:] if length is None else (
            self._files[path][offset : offset + length])  # fmt: skip
        if length is not None and data.size != length:
            raise ModelFailure(f"the external data of '{name}' is shorter than its type and shape")
        return data


def _inner_tensors(proto: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    """The tensors in attributes, subgraphs and functions."""
    for part in (*proto.graph.node, *proto.graph.sparse_initializer, *proto.functions):
        yield from tensors_of(part)


def _resolved(name: str, location: str, folder: Path) -> Path:
    """The file itself, links followed, which must be inside the model's folder."""
    try:
        path = (folder / location).resolve()
        found = path.is_file()
    except (OSError, RuntimeError, ValueError):  # no name of a file, or a loop of links
        path, found = folder / location, False
    if not location or not path.is_relative_to(folder):
        raise FileFailure(
            f"the external data of '{name}', '{location}', is outside the model's folder"
        )
    if not found:
        raise FileFailure(f"the external data of '{name}', '{location}', is missing")
    return path
