"""QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear."""

from __future__ import annotations

import numpy as np

from intonnx.importer.node_view import NodeView
from intonnx.importer.parameters import make_params
from intonnx.importer.registry import imports
from intonnx.ir.errors import QuantizationFailure
from intonnx.ir.graph import Refusal
from intonnx.ir.ops.quantize import Dequantize, DynamicQuantize, Quantize
from intonnx.ir.quantization import quantize_array
from intonnx.ir.reasons import Code
from intonnx.ir.types import DType, QuantParams, quantized
from intonnx.protos import dtype_of_element


@imports("QuantizeLinear", since=10)
@imports("QuantizeLinear", since=1, domain="com.microsoft")
def quantize_linear(node: NodeView) -> None:
    """QuantizeLinear: without a zero point the storage is u8, or what `output_dtype` says."""
    storage = _storage(node)
    refusal = _parameters_refusal(node, storage)
    if refusal is not None:
        return node.keep(refusal)
    params = _params(node, storage)
    if (refusal := _division_refusal(node, params)) is not None:
        return node.keep(refusal)
    x = node.constant(0)
    if x is not None and x.dtype.kind == "f":
        return node.define(quantize_array(x, params), quantized(params, x.shape))
    if not node.type(0).dtype.is_float:
        return node.keep(_unsupported(node, f"'{node.input(0)}' is {node.type(0).dtype}"))
    node.emit(Quantize(out=params), [node.input(0)])
    return None


def _division_refusal(node: NodeView, params: QuantParams) -> Refusal | None:
    """A refusal where x / scale is rounded to fewer bits than float32 and a code depends on them.

    From opset 23 on the division is in the type of the scale unless `precision` names another.
    8-bit codes are not two steps apart for it, as long as nothing becomes infinite.
    """
    precision = node.attribute("precision", 0)
    if precision == 0 and (node.version < 23 or params.expressed is DType.F32):
        return None
    if precision and dtype_of_element(precision) is DType.F32:
        return None
    largest = np.max(np.abs(params.scale)) * (params.qmax - params.qmin)
    harmless = params.storage.bits <= 8 and largest < np.finfo(np.float16).max
    if precision == 0 and params.expressed is DType.F16 and harmless:
        return None
    return _unsupported(node, "the division is not in float32 (attribute `precision`)")


@imports("DequantizeLinear", since=10)
@imports("DequantizeLinear", since=1, domain="com.microsoft")
def dequantize_linear(node: NodeView) -> None:
    """DequantizeLinear: the storage is the type of x, the result that of the scale.

    From opset 23 on `output_dtype` can name another type for the result.
    """
    storage = node.type(0).dtype
    refusal = _parameters_refusal(node, storage)
    if refusal is not None:
        return node.keep(refusal)
    params = _params(node, storage)
    if (element := node.attribute("output_dtype", 0)) != 0:
        expressed = dtype_of_element(element)
        if expressed not in (DType.F32, DType.F16, DType.BF16):
            return node.keep(_unsupported(node, f"the result is {expressed}"))
        params = params.model_copy(update={"expressed": expressed})
    node.emit(Dequantize(), [node.codes(node.input(0), params)])
    return None


@imports("DynamicQuantizeLinear", since=11)
def dynamic_quantize_linear(node: NodeView) -> None:
    """DynamicQuantizeLinear: the scale and the zero point are values."""
    node.emit(DynamicQuantize(), [node.input(0)])


def _storage(node: NodeView) -> DType:
    if node.has(2):
        return node.type(2).dtype
    element = node.attribute("output_dtype", 0)
    return dtype_of_element(element) if element else DType.U8


def _parameters_refusal(node: NodeView, storage: DType) -> Refusal | None:
    if not storage.is_integer:
        return _unsupported(node, f"codes of type {storage} have no integer arithmetic")
    node.input(1)  # must be there
    for index, what in ((1, "scale"), (2, "zero point")):
        if node.has(index) and node.constant(index) is None:
            return Refusal(
                code=Code.RUNTIME_PARAMETERS,
                detail=f"the {what} '{node.input(index)}' is computed at run time or is an input "
                "that the caller may override: make it a constant initializer",
            )
    scale = node.constant(1)
    if scale is not None and node.constant(0) is not None and np.any(scale < 0):
        # Weight-only quantizers write such scales; no integer arithmetic is built on them.
        return _unsupported(node, f"the scale '{node.input(1)}' of constant codes is negative")
    if scale is not None and str(scale.dtype) not in ("float32", "float16", "bfloat16"):
        return _unsupported(node, f"the scale '{node.input(1)}' is {scale.dtype}")
    return None


def _unsupported(node: NodeView, why: str) -> Refusal:
    return Refusal(code=Code.UNSUPPORTED_TYPE, detail=f"{why} at {node.label}")


def _params(node: NodeView, storage: DType) -> QuantParams:
    kind = node.type(0)
    scale, zeros = node.constant(1), node.constant(2)
    assert scale is not None
    if zeros is not None and node.type(2).dtype is not storage:
        raise QuantizationFailure(
            f"the zero point '{node.input(2)}' is {node.type(2).dtype}, the codes are {storage}"
        )
    per_axis = node.version >= 13 or node.proto.domain == "com.microsoft"
    params = make_params(
        scale,
        zeros,
        storage,
        rank=kind.rank,
        axis=int(node.attribute("axis", 1)) if per_axis else None,
        block=node.attribute("block_size", 0) or None,
        node=node.label,
    )
    if params.axis is not None and params.block is None and kind.shape is not None:
        size = kind.shape[params.axis]
        if isinstance(size, int) and size != params.scale.size:
            raise QuantizationFailure(
                f"{params.scale.size} scales along axis {params.axis} of '{node.input(0)}', which "
                f"has {size} elements"
            )
    return params
