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
    if refusal is not None or node.attribute("precision", 0) not in (0, 1):
        return node.keep(refusal or _unsupported(node, "the attribute `precision` is not float32"))
    params = _params(node, storage)
    x = node.constant(0)
    if x is not None and x.dtype.kind == "f":
        return node.define(quantize_array(x, params), quantized(params, x.shape))
    if not node.type(0).dtype.is_float:
        return node.keep(_unsupported(node, f"'{node.input(0)}' is {node.type(0).dtype}"))
    node.emit(Quantize(out=params), [node.input(0)])
    return None


@imports("DequantizeLinear", since=10)
@imports("DequantizeLinear", since=1, domain="com.microsoft")
def dequantize_linear(node: NodeView) -> None:
    """DequantizeLinear: the storage is the type of x."""
    storage = node.type(0).dtype
    refusal = _parameters_refusal(node, storage)
    if refusal is not None:
        return node.keep(refusal)
    codes = node.codes(node.input(0), _params(node, storage))
    node.emit(Dequantize(), [codes])
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
