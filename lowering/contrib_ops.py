"""Operators of com.microsoft that stayed as they are, in numpy: the onnx package has none of them.

Source: the operators' documentation (ContribOperators.md of onnxruntime), and for what it leaves
open, the results of onnxruntime.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx.reference.op_run import OpRun

from intonnx.ir.packing import unpacked
from intonnx.ir.types import Array

MICROSOFT = "com.microsoft"


class MatMulNBits(OpRun):
    """A [..., K] times weights of 2, 4 or 8 bits, dequantized in float32; result [..., N]."""

    op_domain = MICROSOFT

    def _run(self, a: Array, b: Array, scales: Array, *others: Any, **given: Any) -> tuple[Array]:
        zero_points, groups, bias = [*others, None, None, None][:3]
        rows, columns, block = int(given["K"]), int(given["N"]), int(given["block_size"])
        bits = int(given.get("bits") or 4)
        count = -(-rows // block)
        codes = unpacked(b.reshape(columns, count, -1), bits).reshape(columns, -1)[:, :rows]
        index = np.arange(rows) // block if groups is None else groups[:rows]
        real = codes.astype(np.float32)
        real -= _block_zeros(zero_points, columns, count, bits)[:, index]
        real *= scales.reshape(columns, count).astype(np.float32)[:, index]
        result = np.matmul(a.astype(np.float32), real.T)
        if bias is not None:
            result = result + bias.astype(np.float32)
        return (result.astype(a.dtype),)


def _block_zeros(given: Array | None, columns: int, count: int, bits: int) -> Array:
    if given is None:
        return np.full((columns, count), 1 << (bits - 1), np.float32)
    if given.dtype != np.uint8:
        return given.reshape(columns, count).astype(np.float32)
    return unpacked(given.reshape(columns, -1), bits)[:, :count].astype(np.float32)


CONTRIB_OPS: Sequence[type[OpRun]] = (MatMulNBits,)
