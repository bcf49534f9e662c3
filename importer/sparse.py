"""Sparse tensors, of initializers and of Constant: they become dense constants.

Source: SparseTensorProto in onnx.proto; Constant-11.
"""

from __future__ import annotations

import math

import numpy as np
import onnx

from intonnx.ir.errors import LimitFailure, ModelFailure
from intonnx.ir.types import Array
from intonnx.protos import array_of

MAX_ELEMENTS = 1 << 28
"""The largest dense tensor that is made from a sparse one."""


def dense(sparse: onnx.SparseTensorProto) -> Array:
    """The tensor with its zeros.

    Raises LimitFailure when it would have more than `MAX_ELEMENTS` elements, ModelFailure when an
    index is outside of it.
    """
    name, shape = sparse.values.name, tuple(sparse.dims)
    values, indices = array_of(sparse.values), array_of(sparse.indices).astype(np.int64)
    if math.prod(shape) > MAX_ELEMENTS:
        raise LimitFailure(
            f"the sparse tensor '{name}' has {math.prod(shape)} elements, more than {MAX_ELEMENTS}"
        )
    # One number for each element counts through the whole tensor, a row of them names the axes.
    limits = np.asarray(shape if indices.ndim == 2 else math.prod(shape))
    fits = indices.shape in ((values.size,), (values.size, len(shape)))
    if min(shape, default=0) < 0 or not fits or np.any((indices < 0) | (indices >= limits)):
        raise ModelFailure(
            f"the sparse tensor '{name}' has indices that its shape {list(shape)} has not"
        )
    result = np.zeros(shape, values.dtype)
    if indices.ndim == 1:
        result.reshape(-1)[indices] = values.reshape(-1)
    else:
        result[tuple(indices.T)] = values.reshape(-1)
    return result
