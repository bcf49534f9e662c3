"""Weights that CPUs without VNNI would multiply wrongly.

On such x86 CPUs the u8 x s8 kernels of onnxruntime add two neighbouring products in int16, where
255 * 127 * 2 saturates. Moving the weights from s8 to u8 (code + 128, zero point + 128) keeps every
value and uses kernels that are exact everywhere. It is done only for weights that can reach it.
"""

from __future__ import annotations

import numpy as np

from intonnx.ir.graph import Node
from intonnx.ir.types import Array, DType, QuantParams

from .emitter import Emitter

INT16_MAX = 32767


def can_saturate(w: Array, x: QuantParams, reduction_axis: int) -> bool:
    """Whether two products of raw codes, neighbours on the reduction axis, can leave int16.

    `w` holds s8 codes of any shape, `x` are the parameters of u8 activations. A pair may also meet
    across the end of a row, so the two largest magnitudes of one sign decide.
    """
    if x.storage is not DType.U8:
        return False
    rows = np.moveaxis(w.astype(np.int64), reduction_axis, 0).reshape(w.shape[reduction_axis], -1)
    highest = np.sort(np.maximum(rows, 0), axis=None)[-2:].sum()
    lowest = -np.sort(np.minimum(rows, 0), axis=None)[:2].sum()
    return bool(x.qmax * highest > INT16_MAX or x.qmax * lowest > INT16_MAX + 1)


def exact_weights(node: Node, index: int, reduction_axis: int, out: Emitter) -> list[str]:
    """The weights at this operand with scale and zero point, moved to u8 where they must be."""
    name = node.operands[index]
    w, params = out.graph.constants.get(name), out.params(name)
    x = out.params(node.operands[0])
    hazard = (
        out.runtime == "onnxruntime"
        and w is not None
        and params.storage is DType.I8
        and can_saturate(w, x, reduction_axis)
    )
    if not hazard or w is None:
        return out.quantized_operand(name)
    codes = (w.astype(np.int16) + 128).astype(np.uint8)
    zeros = (params.zero_point + 128).astype(np.uint8)
    return [
        out.constant(codes, f"{name}.u8"),
        out.scale(params),
        out.constant(zeros, "zero_point"),
    ]
