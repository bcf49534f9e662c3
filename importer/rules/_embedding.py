"""QEmbedLayerNormalization: rows of quantized tables, added up and normalized in float."""

from __future__ import annotations

import numpy as np

from intonnx.importer.node_view import NodeView
from intonnx.importer.registry import imports
from intonnx.ir.graph import Refusal
from intonnx.ir.ops.gather import Gather
from intonnx.ir.ops.quantize import Dequantize
from intonnx.ir.reasons import Code
from intonnx.ir.types import DType

from ._scaled_products import MICROSOFT

_AXES_SINCE = {"ReduceMean": 18, "ReduceSum": 13}
"""From these opsets on the axes are an input."""


@imports("QEmbedLayerNormalization", since=1, domain=MICROSOFT)
def qembed_layer_normalization(node: NodeView) -> None:
    """QEmbedLayerNormalization: ids, tables, gamma and beta, mask, their scales, zero points.

    The rows are chosen among the codes; their sum and its normalization are float, as in the model.
    """
    length = (node.type(0).shape or ("?", "?"))[1]
    if (refusal := _refusal(node)) is not None:
        return node.keep(refusal)
    words = _dequantized(node, _rows(node, 2, 8, 13, node.input(0)))
    places = node.new_constant(node.fresh("places"), np.arange(int(length), dtype=np.int64))
    positions = _dequantized(node, _rows(node, 3, 9, 14, places))
    total = node.onnx("Add", [words, positions])
    if node.has(1) and node.has(4):
        segments = _dequantized(node, _rows(node, 4, 10, 15, node.input(1)))
        total = node.onnx("Add", [total, segments])
    gamma = _dequantized(node, _codes(node, 5, 11, 16))
    beta = _dequantized(node, _codes(node, 6, 12, 17))
    _normalized(node, total, gamma, beta)
    if node.output(1):
        _count(node)
    return None


def _refusal(node: NodeView) -> Refusal | None:
    shape = node.type(0).shape
    if shape is None or len(shape) != 2 or not isinstance(shape[1], int):
        detail = f"the number of tokens of '{node.input(0)}' is not known: give it a fixed shape"
        return Refusal(code=Code.UNSUPPORTED_TYPE, detail=detail)
    for index in range(8, 18):
        if node.has(index) and node.constant(index) is None:
            detail = f"'{node.input(index)}' is computed at run time: make it a constant"
            return Refusal(code=Code.RUNTIME_PARAMETERS, detail=detail)
    return None


def _codes(node: NodeView, table: int, scale: int, zero: int) -> str:
    params = node.params(scale, zero, node.type(table).dtype, rank=None, axis=None)
    assert params is not None  # `_refusal` saw to it
    return node.codes(node.input(table), params)


def _rows(node: NodeView, table: int, scale: int, zero: int, indices: str) -> str:
    codes = _codes(node, table, scale, zero)
    return node.emit(Gather(axis=0), [codes, indices], [node.fresh("rows")])


def _dequantized(node: NodeView, codes: str) -> str:
    return node.emit(Dequantize(), [codes], [node.fresh("real")])


def _normalized(node: NodeView, x: str, gamma: str, beta: str) -> None:
    epsilon = np.asarray(node.attribute("epsilon", 1e-12), np.float32)
    centred = node.onnx("Sub", [x, _reduced(node, "ReduceMean", x)])
    variance = _reduced(node, "ReduceMean", node.onnx("Mul", [centred, centred]))
    shifted = node.onnx("Add", [variance, node.new_constant(node.fresh("epsilon"), epsilon)])
    unit = node.onnx("Div", [centred, node.onnx("Sqrt", [shifted])])
    node.onnx("Add", [node.onnx("Mul", [unit, gamma]), beta], node.output())


def _count(node: NodeView) -> None:
    """How many tokens of each sequence the mask marks with 1; 0 without a mask."""
    if not node.has(7):
        zero = node.new_constant(node.fresh("zero"), np.zeros((), np.int32))
        ids = node.onnx("Mul", [node.input(0), zero])
        _reduced(node, "ReduceSum", ids, node.output(1), keepdims=0)
        return
    one = node.new_constant(node.fresh("one"), np.ones((), np.int32))
    marks = node.cast(node.onnx("Equal", [node.input(7), one]), DType.I32)
    _reduced(node, "ReduceSum", marks, node.output(1), keepdims=0)


def _reduced(node: NodeView, op_type: str, x: str, result: str = "", keepdims: int = 1) -> str:
    if node.opset < _AXES_SINCE[op_type]:
        return node.onnx(op_type, [x], result, axes=[-1], keepdims=keepdims)
    axes = node.new_constant(node.fresh("axes"), np.asarray([-1], np.int64))
    return node.onnx(op_type, [x, axes], result, keepdims=keepdims)
