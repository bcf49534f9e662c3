"""Between real values and codes: quantize, dequantize, requantize."""

from __future__ import annotations

from typing import ClassVar

from intonnx.ir.broadcast import broadcasts_to
from intonnx.ir.op import Op, OperandTypes, ResultTypes, optional_operand, register_op
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
    """Codes to real values: (x - zero_point) * scale, then plus a bias.

    Operands: `x`; `scale`, `other_scale` and `bias`, f32, optional, which broadcast to `x`.
    Two forms: `x` quantized, then the scale is that of its type; or `x` plain integers, the sums of
    an integer operator or codes without a zero point, whose scale is known at run time only: the
    product of the operands `scale` and `other_scale` (1 when absent).
    Result: the expressed type of `x`, f32 in the second form, in the shape of `x`.
    An exact subtraction in int32 and one float32 product, f32(x) * (scale * other_scale); with
    `in_turn` two products, (f32(x) * scale) * other_scale. Then one float32 sum with the bias.
    Source: ONNX DequantizeLinear-21; com.microsoft MatMulIntegerToFloat-1.

    Constraints:
        C1: `x` is quantized and no scale is given, or `x` holds plain integers and `scale` is.
        C2: `scale`, `other_scale` and `bias` are f32 and broadcast to the shape of `x`; a bias
            needs real values of f32.
        C3: `in_turn` has two scales.
    """

    name: ClassVar[str] = "qnn.dequantize"
    signature: ClassVar[tuple[str, ...]] = ("x", "scale?", "other_scale?", "bias?")
    kind: ClassVar[str] = "boundary"
    in_turn: bool = False

    def infer(self, operands: OperandTypes) -> ResultTypes:
        x = self.operand(operands, 0)
        scale, other, bias = (optional_operand(operands, index) for index in (1, 2, 3))
        if x.quant is None:
            given = x.is_integer and scale is not None
            self.require(given, "C1", f"the operand is {x.dtype}, not quantized")
        else:
            self.require(scale is None and other is None, "C1", "the scale is given twice")
        self.require(not self.in_turn or other is not None, "C3", "there is one scale")
        expressed = DType.F32 if x.quant is None else x.params.expressed
        for kind in (scale, other, bias):
            if kind is not None:
                real = kind.dtype is expressed is DType.F32
                self.require(real, "C2", f"{kind.dtype} beside real values of {expressed}")
                fits = broadcasts_to(kind.shape, x.shape)
                self.require(fits, "C2", f"the shape {kind.shape} does not broadcast to {x.shape}")
        return (plain(expressed, x.shape),)


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
