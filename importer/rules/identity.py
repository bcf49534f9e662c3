"""What gives its input on as it is: Identity, Dropout in inference, Cast to the same type."""

from __future__ import annotations

from intonnx.importer.qdq.boundary import Boundary
from intonnx.importer.qdq.codes import OnCodes, is_used
from intonnx.importer.qdq.table import table_of
from intonnx.importer.registry import commutes, quantizes
from intonnx.ir.graph import Refusal
from intonnx.ir.ops.identity import Identity
from intonnx.ir.reasons import Code
from intonnx.ir.types import QuantParams


@commutes("Identity")
def identity_on_codes(
    boundary: Boundary, params: QuantParams | None, exact: bool
) -> OnCodes | Refusal:
    """Any parameters, per-axis and blocked ones too."""
    return OnCodes(Identity())


@commutes("Dropout")
def dropout_on_codes(
    boundary: Boundary, params: QuantParams | None, exact: bool
) -> OnCodes | Refusal:
    """Nothing is dropped outside of training, which is an input from opset 12 on."""
    name = boundary.name(0)
    if is_used(boundary, 1):
        return Refusal(
            code=Code.UNSUPPORTED_ATTRIBUTE,
            detail=f"the mask '{boundary.node.results[1]}' is read: remove the Dropout",
        )
    if boundary.has(2):
        training = boundary.needs_constant(2, "training mode")
        if isinstance(training, Refusal):
            return training
        if training.any():
            return Refusal(
                code=Code.UNSUPPORTED_ATTRIBUTE,
                detail=f"'{name}' is dropped at random: set training_mode to false",
            )
    return OnCodes(Identity())


@commutes("Cast")
def cast_on_codes(boundary: Boundary, params: QuantParams | None, exact: bool) -> OnCodes | Refusal:
    """A Cast to the type that the value has already."""
    if boundary.type(0).dtype is boundary.result_type.dtype:
        return OnCodes(Identity())
    return _another_type(boundary)


@quantizes("Cast")
def quantize_cast(boundary: Boundary) -> Refusal | None:
    """What a Cast rounds a table holds: to float16 and back, or on the way to a quantizer."""
    if boundary.type(0).dtype.is_float and boundary.result_type.dtype.is_float:
        return table_of(boundary)
    return _another_type(boundary)


def _another_type(boundary: Boundary) -> Refusal:
    kind, result = boundary.type(0).dtype, boundary.result_type.dtype
    remedy = f"leave the values in {kind}"
    if kind.is_float and not result.is_float:
        remedy = "put a QuantizeLinear, which rounds and saturates, in its place"
    elif result.is_float and not kind.is_float:
        remedy = "put a DequantizeLinear with a constant scale in its place"
    return Refusal(
        code=Code.UNSUPPORTED_TYPE,
        detail=f"'{boundary.name(0)}' is cast from {kind} to {result}: {remedy}",
    )
