"""Weights in the type that the kernels of the runtime multiply exactly.

On x86 CPUs without VNNI the u8 x s8 kernels of onnxruntime add two neighbouring products in int16,
where 255 * 127 * 2 saturates. Moving the weights from s8 to u8 (code + 128, zero point + 128) keeps
every value and uses kernels that are exact everywhere. It is done only for weights that can reach
it. For s8 activations with u8 weights there is no kernel at all: these weights move to s8. Weights
under 8 bits take a byte each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from intonnx.ir.bounds import columns, saturating_sums
from intonnx.ir.changes import Stored
from intonnx.ir.graph import Node
from intonnx.ir.ops.storage_cast import StorageCast
from intonnx.ir.storage import is_signed, moved_codes, moved_params
from intonnx.ir.types import Array, DType, QuantParams, TensorType, quantized

from .emitter import Emitter


def can_saturate(w: Array, x: TensorType, reduction_axes: Sequence[int]) -> bool:
    """Whether two products of raw codes that one sum adds as a pair can leave int16.

    `w` holds s8 codes of any shape, summed over `reduction_axes`; `x` is the activation's type.
    """
    return bool(saturating_sums(columns(w.astype(np.int64), reduction_axes), x).any())


def exact_codes(
    node: Node, index: int, reduction_axes: Sequence[int], out: Emitter, zero: str = ""
) -> tuple[str, Array | None]:
    """The weights at this operand and their zero points, moved to another type if need be.

    `zero` names the zero point of plain integers; quantized ones have it in their type. What is
    not constant stays as it is, and a zero point that is not known is None. Without axes no kernel
    adds products in pairs.
    """
    name = node.operands[index]
    kind, x = out.type(name), out.type(node.operands[0])
    w, zeros = out.graph.constants.get(name), _constant_zero(kind, zero, out)
    if w is None or zeros is None:
        return out.operand(name), None if zeros is None else zeros.astype(kind.dtype.numpy)
    storage = DType.I8 if kind.dtype.signed else DType.U8
    pairs = reduction_axes if out.pairs_saturate else ()
    offset = _offset(w, storage, x, pairs)
    if not offset and kind.dtype is storage:
        return out.operand(name), zeros.astype(storage.numpy)
    if offset:
        storage = DType.U8 if storage is DType.I8 else DType.I8
    moved = (w.astype(np.int16) + offset).astype(storage.numpy)
    codes = out.constant(moved, f"{name}.{storage}")
    note_storage(codes, name, kind.dtype, zeros, out)
    return codes, (zeros.astype(np.int16) + offset).astype(storage.numpy)


def note_storage(codes: str, name: str, storage: DType, zeros: Array, out: Emitter) -> None:
    """Keep how the weights `name` were stored that are now the initializer `codes`."""
    points = tuple(int(zero) for zero in zeros.reshape(-1))
    out.stored.setdefault(codes, Stored(name=name, storage=storage, zero=points))


def note_scales(node: Node, weights: str, out: Emitter) -> None:
    """Keep the scales of the operands of an integer product, which has no place for them.

    `weights` is the initializer of operand 1. An activation has a place where it is quantized, but
    not where the model gives it as plain integers.
    """
    given = out.graph.producers.get(node.operands[0])
    if given is not None and isinstance(given.op, StorageCast):
        codes = given.operands[0]
        _note_scale(codes, codes, out.type(node.operands[0]).quant, out)
    if (name := node.operands[1]) in out.graph.constants:
        _note_scale(weights, name, out.type(name).quant, out)


def _note_scale(codes: str, name: str, params: QuantParams | None, out: Emitter) -> None:
    if params is not None and params.block is None:
        out.stored[codes] = Stored.with_scales(name, params)


def real_weights(activation: str, name: str, reduction_axes: Sequence[int], out: Emitter) -> str:
    """The real value of the weights `name` that multiply `activation`.

    onnxruntime on x86 makes integer operators of DQ -> op -> Q, with u8 activations also where they
    are s8: weights that could saturate then are dequantized from u8 codes.
    """
    kind, x, w = out.type(name), out.type(activation), out.graph.constants.get(name)
    danger = out.pairs_saturate and out.runtime == "onnxruntime" and not out.qlinear
    if w is None or not (danger and is_signed(kind) and x.dtype in (DType.U8, DType.I8)):
        return out.real(name)
    if is_signed(x):
        x = quantized(moved_params(x.params), x.shape)
    if not reduction_axes or not can_saturate(w, x, reduction_axes):
        return out.real(name)
    params = moved_params(kind.params)
    codes = out.constant(moved_codes(w), f"{name}.u8")
    note_storage(codes, name, kind.dtype, kind.params.zero_point, out)
    inputs = [codes, out.scale(params), out.zero_point(params)]
    layout: dict[str, Any] = {"axis": params.axis, "block_size": params.block}
    return out.value("DequantizeLinear", inputs, f"{name}.real", **layout)


def _offset(w: Array, storage: DType, x: TensorType, reduction_axes: Sequence[int]) -> int:
    if storage is DType.U8:
        return -128 if x.dtype is DType.I8 else 0
    return 128 if reduction_axes and can_saturate(w, x, reduction_axes) else 0


def _constant_zero(kind: TensorType, zero: str, out: Emitter) -> Array | None:
    if kind.quant is not None:
        return kind.quant.zero_point
    return out.graph.constants.get(zero) if zero else np.zeros((), np.int64)
