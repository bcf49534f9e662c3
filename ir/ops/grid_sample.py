"""Sample a tensor at places that another tensor names."""

from __future__ import annotations

from typing import ClassVar, Literal

from intonnx.ir.op import Op, OperandTypes, ResultTypes, register_op
from intonnx.ir.types import UNKNOWN_DIM, Dim, DType, QuantParams, quantized

SampleMode = Literal["nearest", "linear", "cubic"]
PaddingMode = Literal["zeros", "border", "reflection"]


@register_op
class GridSample(Op):
    """The values of `x` at the places of `grid`, interpolated and quantized.

    Operands: `x` [N, C, *spatial], quantized; `grid` [N, *spatial', n], f32 or quantized: for each
    cell of the result a place in `x`, last spatial axis first, from -1 to 1. Result: codes
    [N, C, *spatial'] with the parameters `out`. Places are computed in float32, as onnxruntime
    does; the weighted mean of the real values is computed in float64 and rounded once, half to
    even. The nearest value is requantized as DQ -> Q does.
    Source: ONNX GridSample-22; onnxruntime, whose float32 mean may round the other way.

    Attributes:
        mode: `nearest` has 1 cell an axis, `linear` 2, `cubic` 4 (coefficient -0.75).
        padding: what lies outside `x`: real zeros, the nearest cell, or the mirrored tensor.
        align_corners: whether -1 and 1 are the middles of the cells at the border, not their edges.
        out: the parameters of the result.

    Constraints:
        C1: `x` has 2 or 3 spatial axes, 2 in `cubic` mode; `grid` has its rank, and as many
            numbers a place as there are spatial axes.
        C2: `x` is quantized per tensor, in at most 16 bits.
        C3: `grid` is f32, or quantized and f32 when dequantized.
        C4: `out` is per tensor, in at most 16 bits.
    """

    name: ClassVar[str] = "qnn.grid_sample"
    signature: ClassVar[tuple[str, ...]] = ("x", "grid")
    mode: SampleMode = "linear"
    padding: PaddingMode = "zeros"
    align_corners: bool = False
    out: QuantParams

    def infer(self, operands: OperandTypes) -> ResultTypes:
        x, grid = self.operand(operands, 0), self.operand(operands, 1)
        shape, places = self.shape_of(operands, 0, "C1"), self.shape_of(operands, 1, "C1")
        ranks = (4,) if self.mode == "cubic" else (4, 5)
        fits = len(shape) in ranks and len(places) == len(shape)
        self.require(fits, "C1", f"ranks are {len(shape)}, {len(places)}")
        numbers = {size for size in places[-1:] if isinstance(size, int)}
        self.require(numbers <= {len(shape) - 2}, "C1", f"a place has {numbers} numbers")
        batches = {size for size in (*shape[:1], *places[:1]) if isinstance(size, int)}
        self.require(len(batches) <= 1, "C1", f"batches of {batches}")
        given = x.quant is not None and x.quant.per_tensor and x.dtype.bits <= 16
        self.require(given, "C2", f"x is {x.dtype}, not quantized per tensor")
        real = grid.dtype if grid.quant is None else grid.quant.expressed
        self.require(real is DType.F32, "C3", f"the grid is {real}, or not quantized")
        fits = self.out.per_tensor and self.out.storage.bits <= 16
        self.require(fits, "C4", f"the result is {self.out.storage}, or quantized per axis")
        batch: list[Dim] = [size for size in (shape[0], places[0]) if size != UNKNOWN_DIM]
        known = [size for size in batch if isinstance(size, int)]
        first = [*known, *batch, UNKNOWN_DIM][0]
        return (quantized(self.out, [first, *shape[1:2], *places[1:-1]]),)
