"""Element-wise functions of one tensor: LeakyRelu, Sigmoid, Tanh, Gelu, x * sigmoid(x) and so on.

Whatever float operators lie between one quantized tensor and a QuantizeLinear, they are one table.
"""

from __future__ import annotations

from intonnx.importer.float_functions import UNARY
from intonnx.importer.node_view import NodeView
from intonnx.importer.qdq.recipe import table_for
from intonnx.importer.qdq.table import table_of
from intonnx.importer.registry import imports, quantizes
from intonnx.ir.ops.lut import FloatStep, Lut
from intonnx.ir.types import plain

__all__ = ["table_of"]


quantizes(*UNARY)(table_of)
# These come here when they cannot act on codes.
quantizes("Relu", "Clip")(table_of)


@imports("QLinearSigmoid", since=1, domain="com.microsoft")
def qlinear_sigmoid(node: NodeView) -> None:
    """QLinearSigmoid: X, X_scale, X_zero_point, Y_scale, Y_zero_point."""
    _qlinear(node, FloatStep("Sigmoid"))


@imports("QLinearLeakyRelu", since=1, domain="com.microsoft")
def qlinear_leaky_relu(node: NodeView) -> None:
    """QLinearLeakyRelu: X, X_scale, X_zero_point, Y_scale, Y_zero_point, attribute alpha."""
    _qlinear(node, FloatStep("LeakyRelu", (0,), (("alpha", node.attribute("alpha", 0.01)),)))


def _qlinear(node: NodeView, step: FloatStep) -> None:
    storage = node.type(0).dtype
    x = node.params(1, 2, storage, rank=None, axis=None)
    out = node.params(3, 4, storage, rank=None, axis=None)
    if x is None or out is None:
        return node.keep_for_parameters()
    table = table_for((step,), x, out)
    name = node.new_constant(node.fresh("table"), table, plain(storage, table.shape))
    node.emit(Lut(recipe=(step,), out=out), [node.codes(node.input(0), x), name])
    return None
