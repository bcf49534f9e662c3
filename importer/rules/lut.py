"""Element-wise functions of one tensor: LeakyRelu, Sigmoid, Tanh, Gelu, x * sigmoid(x) and so on.

Whatever float operators lie between one quantized tensor and a QuantizeLinear, they are one table.
"""

from __future__ import annotations

from intonnx.importer.float_functions import UNARY
from intonnx.importer.node_view import NodeView
from intonnx.importer.qdq.boundary import Boundary
from intonnx.importer.qdq.recipe import recipe_of, table_for
from intonnx.importer.registry import imports, quantizes
from intonnx.ir.graph import Refusal
from intonnx.ir.ops.lut import FloatStep, Lut
from intonnx.ir.reasons import Code
from intonnx.ir.types import QuantParams, plain


@quantizes(*UNARY)
def table_of(boundary: Boundary) -> Refusal | None:
    """Make an element-wise operator, and those before it, one table for each quantizer after it.

    Works for any operator of `float_functions.FUNCTIONS` whose result is a function of one tensor
    quantized per tensor. Readers of the float result keep the float operator, and a reason. Ends
    the boundary, or changes nothing and returns a Refusal.
    """
    recipe = recipe_of(boundary)
    if isinstance(recipe, Refusal):
        return recipe
    tables: dict[QuantParams, str] = {}

    def operands(out: QuantParams) -> list[str]:
        if out not in tables:
            table = recipe.table(out)
            hint = f"{boundary.node.results[0]}.table"
            tables[out] = boundary.constant_codes(hint, table, plain(out.storage, table.shape))
        return [recipe.x.name, tables[out]]

    refusal = _needs_tensor_parameters(boundary)
    if refusal is not None:
        return refusal
    return boundary.produced(
        lambda out: Lut(recipe=recipe.steps, out=out),
        operands,
        sources=recipe.sources,
        partly=True,
    )


def _needs_tensor_parameters(boundary: Boundary) -> Refusal | None:
    for params in boundary.quantizer_params():
        if not params.per_tensor or params.storage.bits > 16:
            return Refusal(
                code=Code.UNSUPPORTED_ATTRIBUTE,
                detail=f"'{boundary.node.results[0]}' is quantized per axis or in more than 16 "
                "bits: quantize it per tensor, in 8 or 16 bits",
            )
    return None


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
        return node.keep(
            Refusal(
                code=Code.RUNTIME_PARAMETERS,
                detail=f"a scale or zero point of {node.label} is computed at run time",
            )
        )
    table = table_for((step,), x, out)
    name = node.new_constant(node.fresh("table"), table, plain(storage, table.shape))
    node.emit(Lut(recipe=(step,), out=out), [node.codes(node.input(0), x), name])
    return None
