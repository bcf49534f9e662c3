"""Give the operands of an integer product quantization parameters, from the scale of its sums."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from intonnx.ir.graph import Node, Source
from intonnx.ir.op import optional_operand
from intonnx.ir.ops.conv import Conv
from intonnx.ir.ops.dense import MatrixProduct
from intonnx.ir.ops.storage_cast import StorageCast
from intonnx.ir.types import Array, DType, QuantParams, TensorType, plain, quantized

from .boundary import Boundary

_NEIGHBOURS = (0, 1, -1, 2, -2)


def typed_product(
    boundary: Boundary, sums: str, params: QuantParams, sources: Sequence[Source]
) -> str | None:
    """The product of plain integers that makes `sums`, on operands with parameters instead.

    Args:
        boundary: where the product is written.
        sums: plain int32, read by nothing but what becomes the dequantize.
        params: the parameters that the sums shall have.
        sources: the nodes that did the dequantizing.

    Returns the name of the sums with their scale in the type; None when no operands have zero
    points and scales that give exactly these parameters, or another operator reads the plain sums.
    """
    rewriter = boundary.rewriter
    product_id = rewriter.producer_id(sums)
    if product_id is None or not _alone(boundary, sums) or params.storage is not DType.I32:
        return None
    product = rewriter.node(product_id)
    if not isinstance(product.op, Conv | MatrixProduct) or np.any(params.zero_point):
        return None
    left_zero, right_zero = (_zero(boundary, product, index) for index in (3, 4))
    if left_zero is None or right_zero is None or left_zero.size != 1:
        return None
    plan = _Plan(boundary, product, params, left_zero.reshape(()))
    kinds = plan.types(right_zero)
    if kinds is None:
        return None
    bias = optional_operand(product.operands, 2) or ""
    operand_types = [*kinds, rewriter.types[bias] if bias else None]
    if boundary.misfit(product.op, operand_types) is not None:
        return None
    if product.op.infer(operand_types)[0].quant != params:
        return None
    operands = [plan.operand(0, kinds[0]), plan.operand(1, kinds[1]), bias]
    both = [*product.sources, *sources]
    return boundary.emit(product.op, operands, f"{sums}.accumulator", sources=both)


class _Plan:
    """How the scale of the sums is shared between the operands."""

    def __init__(
        self, boundary: Boundary, product: Node, params: QuantParams, left_zero: Array
    ) -> None:
        self._boundary = boundary
        self._product = product
        self._params = params
        self._left_zero = left_zero

    def types(self, right_zero: Array) -> tuple[TensorType, TensorType] | None:
        """The types of both operands; the left one keeps the parameters that it has."""
        left, known = self._known_left()
        scale = _other_factor(self._params.scale, known.scalar_scale) if known else None
        if scale is None or known is None:
            scale, one = self._params.scale, np.ones((), np.float32)
            known = QuantParams(storage=left.dtype, scale=one, zero_point=self._left_zero)
        right = self._boundary.rewriter.types[self._product.operands[1]]
        params = self._right_params(right, scale, right_zero)
        if params is None:
            return None
        try:
            return quantized(known, left.shape), quantized(params, right.shape)
        except ValueError:
            return None

    def _known_left(self) -> tuple[TensorType, QuantParams | None]:
        """The type of the left operand, and the parameters that its codes have in the graph."""
        rewriter = self._boundary.rewriter
        name = _codes_behind(self._boundary, self._product.operands[0])
        kind = rewriter.types[name]
        params = kind.quant
        fits = (
            params is not None
            and params.per_tensor
            and params.expressed is DType.F32
            and params.scalar_zero_point == int(self._left_zero)
        )
        return kind, params if fits else None

    def _right_params(self, right: TensorType, scale: Array, zero: Array) -> QuantParams | None:
        if right.rank is None:
            return None
        if isinstance(self._product.op, Conv):
            axis, zero = 0, zero.reshape(-1) if zero.ndim else zero
        else:
            axis = right.rank - 1
            if any(size != 1 for size in zero.shape[:-1]):
                return None
            zero = zero.reshape(zero.shape[-1:])
        if zero.size == 1:
            zero = zero.reshape(())
        try:
            scale, zero = np.broadcast_arrays(scale, zero)
            return QuantParams(
                storage=right.dtype, scale=scale, zero_point=zero, axis=axis if scale.ndim else None
            )
        except ValueError:
            return None

    def operand(self, index: int, kind: TensorType) -> str:
        """The operand with these parameters: the codes themselves, a constant, or a cast."""
        boundary, given = self._boundary, self._product.operands[index]
        rewriter = boundary.rewriter
        name = _codes_behind(boundary, given)
        if rewriter.types[name].quant == kind.quant:
            return name
        constant = rewriter.constants.get(given)
        if constant is not None:
            return boundary.constant_codes(f"{given}.codes", constant, kind)
        cast: dict[str, Any] = {"out": kind.quant}
        return boundary.emit(StorageCast(**cast), [given], f"{given}.codes", sources=[])


def _codes_behind(boundary: Boundary, name: str) -> str:
    """The codes whose parameters a storage cast took away, else the value itself."""
    producer = boundary.rewriter.producer(name)
    if producer is not None and isinstance(producer.op, StorageCast) and producer.op.out is None:
        return producer.operands[0]
    return name


def _other_factor(product: Array, factor: np.float32) -> Array | None:
    """The float32 numbers that times `factor` are `product`, if there are such."""
    with np.errstate(all="ignore"):
        near = (product.astype(np.float64) / np.float64(factor)).astype(np.float32)
        found, sure = near.copy(), np.zeros(near.shape, bool)
        for steps in _NEIGHBOURS:
            candidate = near
            for _ in range(abs(steps)):
                candidate = np.nextafter(candidate, np.float32(np.inf if steps > 0 else 0))
            fits = (candidate * factor == product) & (candidate > 0) & np.isfinite(candidate)
            found = np.where(fits & ~sure, candidate, found)
            sure = sure | fits
    return np.asarray(found, np.float32) if bool(np.all(sure)) else None


def _zero(boundary: Boundary, product: Node, index: int) -> Array | None:
    """The constant zero point at this operand, 0 where none is given; None for a runtime one."""
    name = optional_operand(product.operands, index)
    if not name:
        return np.zeros((), np.int64)
    value = boundary.rewriter.constants.get(name)
    return None if value is None else value.astype(np.int64)


def _alone(boundary: Boundary, sums: str) -> bool:
    """Whether one Cast alone reads the sums, and one operator what it makes."""
    rewriter = boundary.rewriter
    for name in (sums, *(rewriter.node(i).results[0] for i in rewriter.user_ids(sums))):
        if len(rewriter.user_ids(name)) != 1 or rewriter.is_output(name):
            return False
    return True


def integer_bias(boundary: Boundary) -> bool:
    """Let an Add of an int32 constant to plain sums become the bias of what makes them.

    Returns whether it was done: nothing else reads the sums, and the constant broadcasts to them,
    along the channels of a convolution, any way at all for a matrix product.
    """
    if boundary.result_type.dtype is not DType.I32 or len(boundary.node.operands) != 2:
        return False
    return any(_joined(boundary, data, 1 - data) for data in (0, 1))


def _joined(boundary: Boundary, data: int, constant: int) -> bool:
    rewriter, sums = boundary.rewriter, boundary.name(data)
    product_id, value = rewriter.producer_id(sums), rewriter.constants.get(boundary.name(constant))
    if product_id is None or value is None or rewriter.types[sums].quant is not None:
        return False
    product, shape = rewriter.node(product_id), rewriter.types[sums].shape
    alone = len(rewriter.user_ids(sums)) == 1 and not rewriter.is_output(sums)
    if not alone or shape is None or not isinstance(product.op, Conv | MatrixProduct):
        return False
    if isinstance(product.op, Conv):
        sizes = [*[1] * (len(shape) - value.ndim), *value.shape]
        if len(sizes) != len(shape) or sizes[1] != shape[1] or value.size != shape[1]:
            return False
        value = value.reshape(-1)
    kinds = [rewriter.types[name] if name else None for name in product.operands]
    kinds = [*kinds, None, None, None][: max(3, len(kinds))]
    operands = [*product.operands, "", "", ""][: len(kinds)]
    if operands[2]:
        return False
    kinds[2] = kind = plain(DType.I32, value.shape)
    if boundary.misfit(product.op, kinds) is not None:
        return False
    name = f"{boundary.name(constant)}.bias"
    operands[2] = rewriter.add_constant(name, np.ascontiguousarray(value), kind)
    rewriter.remove(product_id)
    results, sources = boundary.node.results, [*product.sources, *boundary.node.sources]
    rewriter.remove(boundary.node_id)
    rewriter.emit(product.op, operands, results, sources=sources, before=boundary.node_id)
    return True
