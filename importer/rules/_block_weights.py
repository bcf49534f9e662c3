"""MatMulNBits and GatherBlockQuantized: weights packed in blocks, everything else float."""

from __future__ import annotations

import numpy as np

from intonnx.importer.node_view import NodeView
from intonnx.importer.registry import imports
from intonnx.ir.errors import QuantizationFailure
from intonnx.ir.graph import Refusal
from intonnx.ir.ops.quantize import Dequantize
from intonnx.ir.packing import unpacked
from intonnx.ir.reasons import Code
from intonnx.ir.types import Array, DType, QuantParams, dtype_of, quantized

MICROSOFT = "com.microsoft"
_STORAGE = {2: DType.U2, 4: DType.U4, 8: DType.U8}


@imports("MatMulNBits", since=1, domain=MICROSOFT)
def matmul_nbits(node: NodeView) -> None:
    """MatMulNBits: A, B, scales, zero_points, g_idx, bias.

    The weights become constant codes [K, N] with a scale for each block of rows; the product stays
    float, as the model has it. What `accuracy_level` lets a runtime do is not part of the meaning.
    """
    bits = int(node.attribute("bits", 4))
    block, rows, columns = (int(node.attribute(name, 0)) for name in ("block_size", "K", "N"))
    refusal = _packing_refusal(node, bits, block) or _group_refusal(node, block)
    if refusal is not None:
        return node.keep(refusal)
    weights, scales = _known(node, 1), _known(node, 2)
    count = -(-rows // block)
    codes = unpacked(_shaped(node, 1, weights, (columns, count, block * bits // 8)), bits)
    scales = _shaped(node, 2, scales, (columns, count))
    zeros = _zeros(node, bits, (columns, count))
    positive = None if zeros is None else _positive(codes, scales, zeros, bits)
    if positive is None:
        return node.keep(_fraction_refusal(node))
    codes, scales, zeros = positive
    params = QuantParams(
        storage=_STORAGE[bits], scale=scales.T.astype(np.float32), zero_point=zeros.T, axis=0,
        block=block, expressed=node.type(2).dtype,
    )  # fmt: skip
    matrix = np.ascontiguousarray(codes.reshape(columns, -1)[:, :rows].T)
    kind = quantized(params, matrix.shape)
    name = node.new_constant(f"{node.input(1)}.codes", matrix, kind)
    real = node.emit(Dequantize(), [name], [f"{name}.real"])
    bias = node.input(5) if node.has(5) else ""
    product = node.onnx("MatMul", [node.input(0), real], "" if bias else node.output())
    if bias:
        node.onnx("Add", [product, bias], node.output())
    return None


def _packing_refusal(node: NodeView, bits: int, block: int) -> Refusal | None:
    if bits not in _STORAGE or block < 1 or block * bits % 8 or node.attribute("weight_prepacked"):
        return Refusal(
            code=Code.UNSUPPORTED_ATTRIBUTE,
            detail=f"{node.label} has weights of {bits} bits in blocks of {block}, or in the layout"
            " of one device: 2, 4 or 8 bits in whole bytes are read",
        )
    for index in (1, 2, 3):
        if node.has(index) and node.constant(index) is None:
            return Refusal(
                code=Code.RUNTIME_PARAMETERS,
                detail=f"'{node.input(index)}' is computed at run time or may be overridden by the "
                "caller: make it a constant initializer",
            )
    return None


def _group_refusal(node: NodeView, block: int) -> Refusal | None:
    """A refusal unless g_idx, which says the block of each row, says what its position does."""
    groups = node.constant(4)
    if not node.has(4) or (
        groups is not None and np.array_equal(groups, np.arange(groups.size) // block)
    ):
        return None
    return Refusal(
        code=Code.UNSUPPORTED_ATTRIBUTE,
        detail=f"'{node.input(4)}' puts rows into blocks in another order than they have: sort the "
        "rows of the weights by their blocks",
    )


def _fraction_refusal(node: NodeView) -> Refusal:
    return Refusal(
        code=Code.UNSUPPORTED_TYPE,
        detail=f"a zero point of {node.label} is no code of its weights, or a scale is not finite: "
        "give whole zero points in the range of the weights",
    )


def _known(node: NodeView, index: int) -> Array:
    """A constant that must be there."""
    node.input(index)
    array = node.constant(index)
    assert array is not None
    return array


def _shaped(node: NodeView, index: int, array: Array, shape: tuple[int, ...]) -> Array:
    if array.size != int(np.prod(shape)):
        raise QuantizationFailure(
            f"'{node.input(index)}' has {array.size} elements, not {list(shape)}", node=node.label
        )
    return array.reshape(shape)


def _zeros(node: NodeView, bits: int, shape: tuple[int, int]) -> Array | None:
    """Zero points [N, blocks], packed as the weights or floats; None where they are no codes."""
    if not node.has(3):
        return np.full(shape, 1 << (bits - 1), np.int64)
    given = _known(node, 3)
    if given.dtype == np.uint8:
        packed = _shaped(node, 3, given, (shape[0], -(-shape[1] * bits // 8)))
        return unpacked(packed, bits)[:, : shape[1]].astype(np.int64)
    real = _shaped(node, 3, given, shape).astype(np.float64)
    whole = bool(np.all((real == np.rint(real)) & (real >= 0) & (real < 1 << bits)))
    return real.astype(np.int64) if whole else None


def _positive(
    codes: Array, scales: Array, zeros: Array, bits: int
) -> tuple[Array, Array, Array] | None:
    """The same weights with scales above zero; None where a scale is not finite.

    Code and zero point are complemented where the scale is negative, and equal where it is 0.
    """
    real = scales.astype(np.float32)
    if not np.all(np.isfinite(real)):
        return None
    top = (1 << bits) - 1
    negative, none = real < 0, real == 0
    zeros = np.where(negative, top - zeros, zeros)
    codes = np.where(negative[..., None], top - codes, codes)
    codes = np.where(none[..., None], zeros[..., None], codes)
    return codes.astype(np.uint8), np.where(none, 1, np.abs(real)), zeros


@imports("GatherBlockQuantized", since=1, domain=MICROSOFT)
def gather_block_quantized(node: NodeView) -> None:
    """GatherBlockQuantized: data, indices, scales, zero_points: a Gather of dequantized blocks."""
    bits, block = int(node.attribute("bits", 4)), int(node.attribute("block_size", 128))
    packed = node.type(0).dtype is DType.U8
    refusal = _table_refusal(node, bits, block)
    if refusal is not None:
        return node.keep(refusal)
    data, scales = _known(node, 0), _known(node, 2)
    storage = _STORAGE[bits] if packed else node.type(0).dtype
    codes = unpacked(data, bits) if packed else data
    axis = int(node.attribute("quantize_axis", 1)) % codes.ndim
    if not node.has(3):
        zeros = np.full(scales.shape, 1 << (bits - 1) if packed else 0, np.int64)
    else:
        zeros = unpacked(_known(node, 3), bits) if packed else _known(node, 3)
        zeros = zeros[..., : scales.shape[-1]].astype(np.int64)
    if not np.all(np.isfinite(scales) & (scales > 0)) or zeros.shape != scales.shape:
        return node.keep(_fraction_refusal(node))
    params = QuantParams(
        storage=storage, scale=scales.astype(np.float32), zero_point=zeros, axis=axis, block=block,
        expressed=dtype_of(scales),
    )  # fmt: skip
    name = f"{node.input(0)}.codes"
    name = node.new_constant(name, codes, quantized(params, codes.shape))
    real = node.emit(Dequantize(), [name], [f"{name}.real"])
    axis = int(node.attribute("gather_axis", 0))
    node.onnx("Gather", [real, node.input(1)], node.output(), axis=axis)
    return None


def _table_refusal(node: NodeView, bits: int, block: int) -> Refusal | None:
    storage = node.type(0).dtype
    if not storage.is_integer or bits not in _STORAGE or block < 1:
        detail = f"'{node.input(0)}' holds {storage} in blocks of {block}: use integers in blocks"
        return Refusal(code=Code.UNSUPPORTED_TYPE, detail=detail)
    for index in (0, 2, 3):
        if node.has(index) and node.constant(index) is None:
            detail = f"'{node.input(index)}' is computed at run time: make it a constant"
            return Refusal(code=Code.RUNTIME_PARAMETERS, detail=detail)
    return None
