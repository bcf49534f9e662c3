"""The largest codes, by keys that hold code and index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from intonnx.ir.errors import RunFailure
from intonnx.ir.ops.top_k import TopK
from intonnx.ir.types import Array

from .exact import INT32_LIMIT
from .kernel import Context, Kernel, kernels


@kernels.register(TopK)
def top_k(op: TopK, context: Context) -> Kernel:
    """Each key is distance * length + index: no two are equal, and equal codes sort by index.

    The distance of a code is that from the end of the range that is looked for.
    """
    dtype = context.operand(0).dtype
    end, sign = (dtype.high, -1) if op.largest else (dtype.low, 1)

    def run(operands: Sequence[Any]) -> tuple[Array, ...]:
        x = np.moveaxis(operands[0], op.axis, -1)
        length = x.shape[-1]
        count = int(operands[1].reshape(-1)[0]) if op.k is None else op.k
        if not 0 <= count <= length:
            raise RunFailure(f"k is {count} for an axis of {length} elements")
        fits = (dtype.high - dtype.low + 1) * length < INT32_LIMIT
        wide = np.dtype(np.int32 if fits else np.int64)
        keys = (x.astype(wide) - wide.type(end)) * wide.type(sign * length)
        keys += np.arange(length, dtype=wide)
        distances, indices = np.divmod(_smallest(keys, count), max(length, 1))
        codes = (distances * wide.type(sign) + wide.type(end)).astype(x.dtype)
        back = (np.moveaxis(found, -1, op.axis) for found in (codes, indices.astype(np.int64)))
        return tuple(back)

    return run


def _smallest(keys: Array, count: int) -> Array:
    """The smallest along the last axis, in order."""
    if 0 < count < keys.shape[-1]:
        keys = np.partition(keys, count - 1, axis=-1)
    return np.sort(keys[..., :count], axis=-1)
