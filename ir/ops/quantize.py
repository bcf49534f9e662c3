"""Between real values and codes: quantize, dequantize, requantize."""

from __future__ import annotations

from typing import ClassVar

from intonnx.ir.op import Op, OperandTypes, ResultTypes, register_op
from intonnx.ir.types import DType, QuantParams, plain


@register_op
class Quantize(Op):
    """Real values to codes: clamp(round_half_even(x / scale) + zero_point).

    Operands: `x`, float. Result: codes with the parameters `out` in the shape of `x`.
    Source: ONNX QuantizeLinear-21; the division is in float32, NaN gives the smallest code.

    Constraints:
        C1: `x` is float.
        C2: per-axis and blocked parameters of `out` fit the shape of `x`.
    """

    name: ClassVar[str] = "qnn.quantize"
    signature: ClassVar[tuple[str, ...]] = ("x",)
    kind: ClassVar[str] = "boundary"
    out: QuantParams

    def infer(self, operands: OperandTypes) -> ResultTypes:
        x = self.operand(operands, 0)
        self.require(x.dtype.is_float, "C1", f"the operand is {x.dtype}, not float")
        return (self.codes(self.out, x.shape, "C2"),)


@register_op
class Dequantize(Op):
    """Codes to real values: (x - zero_point) * scale.

    Operands: `x`, quantized. Result: the expressed type of `x` in its shape.
    Source: ONNX DequantizeLinear-21; an exact subtraction in int32, one float32 product.

    Constraints:
        C1: `x` is quantized.
    """

    name: ClassVar[str] = "qnn.dequantize"
    signature: ClassVar[tuple[str, ...]] = ("x",)
    kind: ClassVar[str] = "boundary"

    def infer(self, operands: OperandTypes) -> ResultTypes:
        x = self.operand(operands, 0)
        self.require(x.quant is not None, "C1", f"the operand is {x.dtype}, not quantized")
        return (plain(x.params.expressed, x.shape),)


@register_op
class Requantize(Op):
    """Codes with some parameters to codes with others.

    Operands: `x`, quantized. Result: codes with the parameters `out` in the shape of `x`.
    From an accumulator (i32 or i64 storage) one float32 multiplier is used,
    round_half_even(clamp(f32(x) * (x.scale / out.scale))) + out.zero_point, as the QLinear
    operators do; from narrower codes the value is dequantized and quantized, as DQ -> Q does.
    Source: ONNX QLinearConv-10 and QLinearMatMul-21; numerics page of the documentation.

    Constraints:
        C1: `x` is quantized.
        C2: per-axis and blocked parameters of `out` fit the shape of `x`.
    """

    name: ClassVar[str] = "qnn.requantize"
    signature: ClassVar[tuple[str, ...]] = ("x",)
    out: QuantParams

    def infer(self, operands: OperandTypes) -> ResultTypes:
        x = self.operand(operands, 0)
        self.require(x.quant is not None, "C1", f"the operand is {x.dtype}, not quantized")
        return (self.codes(self.out, x.shape, "C2"),)


@register_op
class DynamicQuantize(Op):
    """Quantize to u8 with the range of the tensor itself.

    Operands: `x`, f32. Results: codes u8 in the shape of `x`, scale f32 [], zero point u8 [].
    Source: ONNX DynamicQuantizeLinear-11.

    Constraints:
        C1: `x` is f32.
    """

    name: ClassVar[str] = "qnn.dynamic_quantize"
    signature: ClassVar[tuple[str, ...]] = ("x",)
    kind: ClassVar[str] = "boundary"

    def infer(self, operands: OperandTypes) -> ResultTypes:
        x = self.operand(operands, 0)
        self.require(x.dtype is DType.F32, "C1", f"the operand is {x.dtype}, not f32")
        return plain(DType.U8, x.shape), plain(DType.F32, ()), plain(DType.U8, ())
