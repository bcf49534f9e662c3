"""Normalize each channel by statistics that are known beforehand."""

from __future__ import annotations

from typing import ClassVar

from intonnx.ir.op import Op, OperandTypes, ResultTypes, register_op
from intonnx.ir.types import DType, QuantParams, quantized


@register_op
class BatchNorm(Op):
    """`(x - mean) / sqrt(variance + epsilon) * scale + bias` for each channel, quantized.

    Operands: `x` [N, C, ...], quantized; `scale`, `bias`, `mean` and `variance`, f32 [C]. Result:
    codes with the parameters `out` in the shape of `x`. The arithmetic is that of onnxruntime in
    float32: s = (1 / sqrt(variance + epsilon)) * scale, then dequantize(x) * s + (bias - mean * s),
    each step rounded. For codes of up to 8 bits it is a table for each channel.
    Source: ONNX BatchNormalization-15 with training_mode 0.

    Constraints:
        C1: `x` is quantized, has rank 2 or more and no blocked scales.
        C2: the other operands are f32 of one length, that of axis 1.
        C3: `out` is per tensor, in at most 16 bits.
    """

    name: ClassVar[str] = "qnn.batch_norm"
    signature: ClassVar[tuple[str, ...]] = ("x", "scale", "bias", "mean", "variance")
    epsilon: float = 1e-5
    out: QuantParams

    def infer(self, operands: OperandTypes) -> ResultTypes:
        x, shape = self.operand(operands, 0), self.shape_of(operands, 0, "C1")
        given = x.quant is not None and x.quant.block is None and len(shape) >= 2
        self.require(given, "C1", f"the operand is {x.dtype}{list(shape)}, or not quantized")
        lengths = {size for size in shape[1:2] if isinstance(size, int)}
        for index in range(1, 5):
            other, sizes = self.operand(operands, index), self.shape_of(operands, index, "C2")
            fits = other.dtype is DType.F32 and len(sizes) == 1
            self.require(fits, "C2", f"operand {index} is {other.dtype}{list(sizes)}")
            lengths |= {size for size in sizes if isinstance(size, int)}
        self.require(len(lengths) <= 1, "C2", f"the numbers of channels are {lengths}")
        fits = self.out.per_tensor and self.out.storage.bits <= 16
        self.require(fits, "C3", f"the result is {self.out.storage}, or quantized per axis")
        return (quantized(self.out, shape),)
