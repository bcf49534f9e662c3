"""Look-ups of codes in a constant table."""

from __future__ import annotations

import math

import numpy as np
import onnx

from intonnx.ir.types import TensorType, static_shape

from .emitter import Emitter

_FEW = 1024
"""Elements up to which one Gather costs less than what GatherElements needs around it."""


def look_up(codes: str, kind: TensorType, table: str, result: str, out: Emitter) -> None:
    """Write `result`, the entries of `table` for `codes` of the type `kind`.

    A negative index counts from the end, as the bit pattern of a negative code does.
    """
    index = out.value("Cast", [codes], f"{result}.index", to=onnx.TensorProto.INT32)
    entries(index, kind, table, result, out)


def entries(index: str, kind: TensorType, table: str, result: str, out: Emitter) -> None:
    """Write `result`, the entries of `table` at `index`, which has the shape that `kind` says.

    In onnxruntime 1.32 a Gather copies entry by entry, 7 ns each; GatherElements, which wants
    indices of the rank of the table, takes 1.6 ns.
    """
    if not _many(kind) or out.runtime != "onnxruntime":
        return out.node("Gather", [table, index], [result])
    if kind.rank == 1:
        return out.node("GatherElements", [table, index], [result], axis=0)
    row = out.constant(np.asarray([-1], np.int64), "shape")
    flat = out.value("Reshape", [index, row], f"{result}.row")
    found = out.value("GatherElements", [table, flat], f"{result}.entries", axis=0)
    return out.node("Reshape", [found, _shape(index, kind, result, out)], [result])


def _many(kind: TensorType) -> bool:
    """Whether there are enough elements; a Reshape to -1 does not do for none."""
    if not kind.rank or 0 in (kind.shape or ()):
        return False
    sizes = static_shape(kind.shape)
    return sizes is None or math.prod(sizes) > _FEW


def _shape(index: str, kind: TensorType, result: str, out: Emitter) -> str:
    """The shape to go back to: a constant where at most one size is not known."""
    sizes = [size if isinstance(size, int) else -1 for size in kind.shape or ()]
    if sizes.count(-1) <= 1:
        return out.constant(np.asarray(sizes, np.int64), "shape")
    return out.value("Shape", [index], f"{result}.shape")
