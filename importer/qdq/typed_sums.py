"""Give the operands of an integer product quantization parameters, from the scale of its sums."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from intonnx.ir.errors import TypeFailure
from intonnx.ir.graph import Node, Source
from intonnx.ir.op import optional_operand
from intonnx.ir.ops.conv import Conv
from intonnx.ir.ops.dense import MatrixProduct
from intonnx.ir.ops.storage_cast import StorageCast
from intonnx.ir.rewriter import NodeId, Rewriter
from intonnx.ir.types import Array, Dim, DType, QuantParams, TensorType, plain, quantized

from .boundary import Boundary

_NEIGHBOURS = (0, 1, -1, 2, -2)


def has_defined_sums(maker: Node) -> bool:
    """Whether the model itself computes these sums in integers, not in float32 in any order."""
    integer = any(source.op in ("ConvInteger", "MatMulInteger") for source in maker.sources)
    return integer or isinstance(maker.op, StorageCast)


def typed_product(
    rewriter: Rewriter, before: NodeId, sums: str, params: QuantParams, sources: Sequence[Source]
) -> str | None:
    """The product of plain integers that makes `sums`, on operands with parameters instead.

    Args:
        rewriter: the graph.
        before: the node that the product is written in front of.
        sums: plain int32, read by nothing but what becomes the dequantize, or by casts to `params`.
        params: the parameters that the sums shall have.
        sources: the nodes that did the dequantizing.

    Returns the name of the sums with their scale in the type; None when no operands have zero
    points and scales that give exactly these parameters, or another operator reads the plain sums.
    """
    product_id = rewriter.producer_id(sums)
    alone = len(rewriter.user_ids(sums)) == 1 or readers_agree(rewriter, sums, params)
    if product_id is None or not alone or rewriter.is_output(sums):
        return None
    if params.storage is not DType.I32:
        return None
    product = rewriter.node(product_id)
    if not isinstance(product.op, Conv | MatrixProduct) or np.any(params.zero_point):
        return None
    left_zero, right_zero = (_zero(rewriter, product, index) for index in (3, 4))
    if left_zero is None or right_zero is None or left_zero.size != 1:
        return None
    plan = _Plan(rewriter, before, product, params, left_zero.reshape(()))
    kinds = plan.types(right_zero)
    if kinds is None:
        return None
    bias = optional_operand(product.operands, 2) or ""
    operand_types = [*kinds, rewriter.types[bias] if bias else None]
    try:
        (inferred,) = product.op.infer(operand_types)
    except TypeFailure:
        return None
    if inferred.quant != params:
        return None
    operands = [plan.operand(0, kinds[0]), plan.operand(1, kinds[1]), bias]
    both = [*product.sources, *sources]
    name = rewriter.fresh(f"{sums}.accumulator")
    rewriter.emit(product.op, operands, [name], sources=both, before=before)
    return name


def readers_agree(rewriter: Rewriter, name: str, params: QuantParams) -> bool:
    """Whether all that reads a value, and is needed itself, gives it these parameters."""
    readers = map(rewriter.node, rewriter.user_ids(name))
    return all(
        isinstance(reader.op, StorageCast) and reader.op.out == params
        for reader in readers
        if any(rewriter.is_output(made) or rewriter.user_ids(made) for made in reader.results)
    )


class _Plan:
    """How the scale of the sums is shared between the operands."""

    def __init__(
        self,
        rewriter: Rewriter,
        before: NodeId,
        product: Node,
        params: QuantParams,
        left_zero: Array,
    ) -> None:
        self._rewriter = rewriter
        self._before = before
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
        right = self._rewriter.types[self._product.operands[1]]
        params = self._right_params(right, scale, right_zero)
        if params is None:
            return None
        try:
            return quantized(known, left.shape), quantized(params, right.shape)
        except ValueError:
            return None

    def _known_left(self) -> tuple[TensorType, QuantParams | None]:
        """The type of the left operand, and the parameters that its codes have in the graph."""
        name = _codes_behind(self._rewriter, self._product.operands[0])
        kind = self._rewriter.types[name]
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
        rewriter, given = self._rewriter, self._product.operands[index]
        name = _codes_behind(rewriter, given)
        if rewriter.types[name].quant == kind.quant:
            return name
        constant = rewriter.constants.get(given)
        if constant is not None:
            return rewriter.add_constant(f"{given}.codes", constant, kind)
        name = rewriter.fresh(f"{given}.codes")
        rewriter.emit(StorageCast(out=kind.quant), [given], [name], before=self._before)
        return name


def _codes_behind(rewriter: Rewriter, name: str) -> str:
    """The codes whose parameters a storage cast took away, else the value itself."""
    producer = rewriter.producer(name)
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


def _zero(rewriter: Rewriter, product: Node, index: int) -> Array | None:
    """The constant zero point at this operand, 0 where none is given; None for a runtime one."""
    name = optional_operand(product.operands, index)
    if not name:
        return np.zeros((), np.int64)
    value = rewriter.constants.get(name)
    return None if value is None else value.astype(np.int64)


def integer_bias(boundary: Boundary) -> bool:
    """Let an Add of int32 to plain sums become the bias of the operator that makes them.

    Returns whether it was done: nothing else reads the sums, and the addend broadcasts to them,
    a constant along the channels of a convolution, anything at all for a matrix product.
    """
    if boundary.result_type.dtype is not DType.I32 or len(boundary.node.operands) != 2:
        return False
    return any(_joined(boundary, data, 1 - data) for data in (0, 1))


def _joined(boundary: Boundary, data: int, addend: int) -> bool:
    rewriter, sums = boundary.rewriter, boundary.name(data)
    product_id, bias = rewriter.producer_id(sums), boundary.name(addend)
    if product_id is None or rewriter.types[sums].quant is not None or bias == sums:
        return False
    product = rewriter.node(product_id)
    alone = len(rewriter.user_ids(sums)) == 1 and not rewriter.is_output(sums)
    if not alone or not isinstance(product.op, Conv | MatrixProduct):
        return False
    if rewriter.types[bias].quant is not None or rewriter.types[bias].shape is None:
        return False
    if isinstance(product.op, Conv):
        channels = _channels(boundary, addend, rewriter.types[sums].shape)
        if channels is None:
            return False
        kind = plain(DType.I32, channels.shape)
        bias = rewriter.add_constant(f"{bias}.bias", channels, kind)
    operands = [*product.operands, "", "", ""][: max(3, len(product.operands))]
    if operands[2]:
        return False
    operands[2] = bias
    kinds = [rewriter.types[name] if name else None for name in operands]
    if boundary.misfit(product.op, kinds) is not None:
        return False
    rewriter.remove(product_id)
    results, sources = boundary.node.results, [*product.sources, *boundary.node.sources]
    rewriter.remove(boundary.node_id)
    rewriter.emit(product.op, operands, results, sources=sources, before=boundary.node_id)
    return True


def _channels(boundary: Boundary, index: int, shape: Sequence[Dim] | None) -> Array | None:
    """A constant that varies along axis 1 of the sums of a convolution, as a vector."""
    value = boundary.rewriter.constants.get(boundary.name(index))
    if value is None or shape is None or value.ndim > len(shape) or value.size != shape[1]:
        return None
    sizes = [*[1] * (len(shape) - value.ndim), *value.shape]
    return np.ascontiguousarray(value.reshape(-1)) if sizes[1] == shape[1] else None
