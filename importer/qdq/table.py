"""Turn float operators on one quantized tensor into a table."""

from __future__ import annotations

from intonnx.ir.graph import Refusal
from intonnx.ir.ops.lut import Lut
from intonnx.ir.reasons import Code
from intonnx.ir.types import QuantParams, plain

from .boundary import Boundary
from .recipe import recipe_of


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
