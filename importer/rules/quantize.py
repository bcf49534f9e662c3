"""QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear; AMD Quark's and QONNX's of the same.

Quark's ExtendedQuantizeLinear, once Vitis AI's VitisQuantizeLinear, is QuantizeLinear for more
types (https://quark.docs.amd.com, custom operators). QONNX's Quant, which Brevitas exports too, is
a QuantizeLinear and a DequantizeLinear in one (https://github.com/fastmachinelearning/qonnx).
"""

from __future__ import annotations

import numpy as np

from intonnx.importer.node_view import NodeView
from intonnx.importer.parameters import broadcast_params, expressed_type, make_params
from intonnx.importer.qdq.boundary import Boundary
from intonnx.importer.qdq.epilogue import dequantized_by_value
from intonnx.importer.registry import imports, quantizes
from intonnx.ir.errors import QuantizationFailure
from intonnx.ir.graph import Refusal
from intonnx.ir.ops.quantize import Dequantize, DynamicQuantize, Quantize
from intonnx.ir.quantization import quantize_array
from intonnx.ir.reasons import Code
from intonnx.ir.types import DType, QuantParams, quantized
from intonnx.protos import dtype_of_element


@imports("QuantizeLinear", since=10)
@imports("QuantizeLinear", since=1, domain="com.microsoft")
@imports("ExtendedQuantizeLinear", since=1, domain="com.amd.quark")
@imports("VitisQuantizeLinear", since=1, domain="com.vai.quantize")
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
    if storage.bits > 16:
        return node.keep(_unsupported(node, f"a value is quantized to {storage}"))
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
    standard = node.proto.domain in ("", "ai.onnx")
    if precision == 0 and (not standard or node.version < 23 or params.expressed is DType.F32):
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
@imports("ExtendedDequantizeLinear", since=1, domain="com.amd.quark")
@imports("VitisDequantizeLinear", since=1, domain="com.vai.quantize")
def dequantize_linear(node: NodeView) -> None:
    """DequantizeLinear: the storage is the type of x, the result that of the scale.

    From opset 23 on `output_dtype` can name another type for the result.
    """
    storage = node.type(0).dtype
    refusal = _parameters_refusal(node, storage)
    if refusal is not None:
        computed = storage.is_integer and node.constant(1) is None
        # `dequantize_by_value` looks at it when all operators are known.
        return node.keep(None if computed and node.proto.domain in ("", "ai.onnx") else refusal)
    params = _params(node, storage)
    if (element := node.attribute("output_dtype", 0)) != 0:
        expressed = dtype_of_element(element)
        if expressed not in (DType.F32, DType.F16, DType.BF16):
            return node.keep(_unsupported(node, f"the result is {expressed}"))
        params = params.model_copy(update={"expressed": expressed})
    node.emit(Dequantize(), [node.codes(node.input(0), params)])
    return None


@quantizes("DequantizeLinear")
def dequantize_by_value(boundary: Boundary) -> Refusal | None:
    """A DequantizeLinear that was kept because its scale or zero point is no constant."""
    if dequantized_by_value(boundary):
        return None
    name = boundary.node.results[0]
    return Refusal(
        code=Code.RUNTIME_PARAMETERS,
        detail=f"the scale or zero point of '{name}' is computed at run time or is an input that "
        "the caller may override: make it a constant initializer",
    )


@imports("DynamicQuantizeLinear", since=11)
def dynamic_quantize_linear(node: NodeView) -> None:
    """DynamicQuantizeLinear: the scale and the zero point are values."""
    node.emit(DynamicQuantize(), [node.input(0)])


@imports("Quant", since=1, domain="qonnx.custom_op.general")
@imports("IntQuant", since=1, domain="qonnx.custom_op.general")
@imports("Quant", since=1, domain="onnx.brevitas")
def qonnx_quant(node: NodeView) -> None:
    """Quant: x, scale, zero point, bit width; every one real numbers, the scale as Mul takes it.

    round(clamp(x / scale + zero point)): with a zero point of 0 it is a QuantizeLinear to the range
    of so many bits. Another zero point would be added before the rounding, which moves ties.
    """
    refusal, params = None, _quant_params(node)
    if isinstance(params, Refusal):
        refusal = params
    elif params.storage.bits > 16 and node.constant(0) is None:
        refusal = _unsupported(node, "a value is quantized to more than 16 bits")
    if refusal is not None or isinstance(params, Refusal):
        return node.keep(refusal)
    x = node.constant(0)
    if x is None:
        codes = node.emit(Quantize(out=params), [node.input(0)], [node.fresh("codes")])
    else:
        kind = quantized(params, x.shape)
        codes = node.new_constant(node.fresh("codes"), quantize_array(x, params), kind)
    node.emit(Dequantize(), [codes])
    return None


def _quant_params(node: NodeView) -> QuantParams | Refusal:
    kind = node.type(0)
    scale, zeros, width = (node.constant(index) for index in (1, 2, 3))
    if scale is None or zeros is None or width is None:
        detail = f"the scale, zero point or bit width of {node.label} is computed at run time"
        return Refusal(code=Code.RUNTIME_PARAMETERS, detail=detail)
    signed, narrow = (bool(node.attribute(name, 1)) for name in ("signed", "narrow"))
    bits, mode = float(width.reshape(-1)[0]), str(node.attribute("rounding_mode", "ROUND"))
    plain = bits.is_integer() and (1 if signed else 0) < bits <= 32 and width.size == 1
    if kind.dtype is not DType.F32 or not plain or scale.dtype != np.float32 or kind.shape is None:
        return _unsupported(node, f"{kind.dtype} values in {bits} bits, or of unknown rank,")
    if np.any(zeros) or mode.upper() not in ("ROUND", "HALF_EVEN"):
        return Refusal(
            code=Code.UNSUPPORTED_ATTRIBUTE,
            detail=f"{node.label} rounds by {mode} with a zero point of {zeros.reshape(-1)[0]}: "
            "quantize with the zero point 0 and round half to even",
        )
    size = next(size for size in (8, 16, 32) if bits <= size)
    storage = DType(f"{'i' if signed else 'u'}{size}")
    params = broadcast_params(scale, np.zeros((), np.int64), storage, kind.shape)
    if params is None:
        return _unsupported(node, f"the scales '{node.input(1)}' vary along several axes")
    span = 1 << int(bits)
    low = -(span // 2) + narrow if signed else 0
    high = span // 2 - 1 if signed else span - 1 - narrow
    return params.limited(low, high)


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
    if scale is not None and expressed_type(scale) is None:
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
    per_axis = node.version >= 13 or node.proto.domain not in ("", "ai.onnx")
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
