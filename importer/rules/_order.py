"""What operators need that compare codes in place of values and tell where the larger one was."""

from __future__ import annotations

from intonnx.ir.graph import Refusal
from intonnx.ir.quantization import keeps_order
from intonnx.ir.reasons import Code
from intonnx.ir.types import QuantParams


def order_refusal(name: str, params: QuantParams) -> Refusal | None:
    """A refusal where per-tensor codes have not the order, or not the ties, of their values."""
    if params.storage.bits > 16:
        return Refusal(
            code=Code.INPUT_NOT_QUANTIZED,
            detail=f"'{name}' holds {params.storage} codes: put a QuantizeLinear and a "
            "DequantizeLinear before the comparison",
        )
    if not keeps_order(params):
        return Refusal(
            code=Code.UNSUPPORTED_TYPE,
            detail=f"different codes of '{name}' have the same value in {params.expressed}: use "
            "float32, or fewer bits",
        )
    return None
